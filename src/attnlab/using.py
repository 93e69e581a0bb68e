"""The commands that use trained models; nothing heavy is imported before they start."""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from attnlab.errors import UserError

if TYPE_CHECKING:
    from attnlab.data.corpora import ParallelText
    from attnlab.search import Search
    from attnlab.studies.translator import Translator
    from attnlab.training.outputs import Translation

SEARCH_OVERRIDE = re.compile(r"search([./][\w./]+)?=")
CHUNK = 1024
"""Lines translated at a time, so that a long file shows its first lines early and needs no more memory than a short one."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}: see {self.prog} --help")


def _parser(command: str, description: str) -> _Parser:
    parser = _Parser(prog=f"attnlab {command}", description=description, allow_abbrev=False)
    parser.add_argument(
        "run",
        nargs="+",
        metavar="RUN",
        help="folder of a finished run, runs/NAME/VARIANT/seed=N; several are searched as an ensemble; "
        "and overrides of the search, such as search.width=10",
    )
    parser.add_argument("--checkpoint", default="best.ckpt", help="of the run: best.ckpt (default) or last.ckpt")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1, mps")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="sentences at a time (default 64)")
    parser.add_argument(
        "--replace-unknown",
        action=argparse.BooleanOptionalAction,
        help="write the most attended source word for an unknown one (default: as in the run's own test)",
    )
    return parser


def translate(arguments: Sequence[str], conf: Path) -> int:
    """Carry out ``attnlab translate``."""
    parser = _parser("translate", "Translate lines of text: from standard input or a file, to standard output or a file.")
    parser.add_argument("--input", type=Path, metavar="FILE", help="read from a file")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to a file")
    parser.add_argument("--n-best", type=int, default=1, metavar="N", help="write N translations, each on a line of its own")
    parser.add_argument("--scores", action="store_true", help="put the search's score and a tab before each translation")
    parser.add_argument("--alignments", action="store_true", help="put a tab and links i-j between words after each one")
    parser.add_argument("--json", action="store_true", help="write one JSON object a line: text, score, tokens, links of all N")
    options = parser.parse_intermixed_args(arguments)
    if options.n_best < 1 or options.batch_size < 1:
        raise UserError("--n-best and --batch-size must be 1 or more")
    if options.input and not options.input.is_file():
        raise UserError(f"no file {options.input}")
    translator = _load(options, conf)
    live = options.input is None and sys.stdin.isatty()
    if live:
        print("one sentence a line; Ctrl-D ends", file=sys.stderr)
    out = options.output.open("w", encoding="utf-8") if options.output else sys.stdout
    try:
        lines = _lines(options.input)
        while chunk := list(islice(lines, 1 if live else CHUNK)):
            for line, found in zip(chunk, translator.n_best(chunk), strict=True):
                _write(line, found[: options.n_best], options, out)
            out.flush()
    finally:
        if options.output:
            out.close()
    return 0


def _lines(path: Path | None) -> Iterator[str]:
    """Yield lines without their ends; what is not UTF-8 is told by its number."""
    stream = path.open("rb") if path else sys.stdin.buffer
    try:
        for number, line in enumerate(stream, 1):
            try:
                yield line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                place = f"{path or 'standard input'}, line {number}"
                raise UserError(f"{place}: not UTF-8; convert it, for example with iconv") from error
    finally:
        if path:
            stream.close()


def _write(line: str, found: Sequence["Translation"], options: argparse.Namespace, out: Any) -> None:
    if options.json:
        told = [
            {
                "text": translation.text,
                "score": translation.score,
                "log_probability": translation.log_probability,
                "tokens": translation.tokens[:-1],
                "links": sorted(_links(line, translation)),
            }
            for translation in found
        ]
        out.write(json.dumps({"source": line, "translations": told}, ensure_ascii=False) + "\n")
        return
    for translation in found:
        score = f"{translation.score:.4f}\t" if options.scores else ""
        links = "\t" + " ".join(f"{i}-{j}" for i, j in sorted(_links(line, translation))) if options.alignments else ""
        out.write(f"{score}{translation.text}{links}\n")


def _links(line: str, translation: "Translation") -> set[tuple[int, int]]:
    """Link the words at white space of a line and of its translation, where tokens spell them."""
    from attnlab.data.links import runs
    from attnlab.evaluation.alignment import from_weights

    source = runs(line.split(), translation.source[:-1])
    target = runs(translation.text.split(), translation.tokens[:-1])
    if not source or not target:
        return set()
    return from_weights(translation.weights, source, target, shift=0)


def evaluate(arguments: Sequence[str], conf: Path) -> int:
    """Carry out ``attnlab evaluate``."""
    parser = _parser("evaluate", "Measure a trained model on its test sets or on any other, without training it again.")
    parser.add_argument("--test", metavar="NAME,...", help="test sets of the run's corpus, or val (default: all its test sets)")
    parser.add_argument("--files", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help="two line-aligned files instead")
    parser.add_argument("--bootstrap", type=int, default=1000, metavar="N", help="samples for confidence intervals (1000)")
    parser.add_argument("--label", default="default", help="name of what is written below evaluations/ in the run's folder")
    options = parser.parse_intermixed_args([f"--{a}" if a.startswith("test=") else a for a in arguments])
    if options.bootstrap < 1 or options.batch_size < 1:
        raise UserError("--bootstrap and --batch-size must be 1 or more")
    if not re.fullmatch(r"[\w.-]+", options.label):
        raise UserError(f"--label is part of a file's name: letters, digits, _ . and -, not {options.label!r}")
    translator = _load(options, conf)
    from attnlab.studies.evaluate import evaluate as measure
    from attnlab.studies.evaluate import save

    runs = _runs(options.run)
    texts, val = _texts(runs[0], options)
    results, hypotheses = {}, {}
    for name, text in texts.items():
        results[name], hypotheses[name] = measure(translator, text, val=val, samples=options.bootstrap)
    told = {"runs": [str(run) for run in runs], "search": _overrides(options.run), "tests": results}
    path = save(runs[0], options.label, told, hypotheses)
    _show(results)
    print(f"written to {path}")
    return 0


def _texts(run: Path, options: argparse.Namespace) -> tuple[dict[str, "ParallelText"], "ParallelText | None"]:
    """Return the test sets asked for, and the validation set."""
    from omegaconf import OmegaConf

    from attnlab.data.corpora import read_pair
    from attnlab.studies.wiring import build

    if options.files:
        for path in options.files:
            if not path.is_file():
                raise UserError(f"no file {path}")
        return {options.files[0].stem: read_pair(*options.files, drop_empty=False)}, None
    corpus = build(OmegaConf.load(run / "config.yaml").data)
    names = options.test.split(",") if options.test else list(corpus.test_names)
    text = corpus.load()
    for name in names:
        if name not in text:
            raise UserError(f"the corpus has no test set {name!r}: there is {', '.join(text)}")
    return {name: text[name] for name in names}, text["val"]


def _show(results: Mapping[str, Mapping[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", *results)
    corpus_scores = {"BLEU": "bleu", "chrF": "chrf", "TER": "ter", "BLEU, tokenized, lower case": "bleu_tok_lc"}
    for label, key in corpus_scores.items():
        table.add_row(label, *(_interval(test[key]) for test in results.values()))
    plain = {
        "sentences": "{sentences:,}",
        "perplexity": "{perplexity:.2f}",
        "token accuracy": "{accuracy:.1%}",
        "length ratio": "{length_ratio:.3f}",
        "unknown words written": "{unknown:.2%}",
    }
    for label, form in plain.items():
        table.add_row(label, *(form.format(**test) for test in results.values()))
    if any("alignment" in test for test in results.values()):
        rates = (f"{test['alignment']['aer']:.1%}" if "alignment" in test else "" for test in results.values())
        table.add_row("alignment error rate", *rates)
    looks = {"entropy, of 1": "relative_entropy", "largest weight": "sharpness", "source covered": "coverage"}
    looks |= {"monotonic steps": "monotonicity", "on punctuation": "punctuation", "on the end symbol": "end"}
    if all("attention" in test for test in results.values()):
        for label, key in looks.items():
            table.add_row(f"attention: {label}", *(f"{test['attention'][key]:.2f}" for test in results.values()))
    lengths = ("\n".join(_bucket(bucket) for bucket in test["by_length"]) for test in results.values())
    table.add_row("BLEU by source length", *lengths)
    Console().print(table)
    signatures = sorted({test["bleu"]["signature"] for test in results.values()})
    print(f"BLEU is {', '.join(signatures)}; intervals are of 95 %, by bootstrap")


def _interval(score: Mapping[str, Any]) -> str:
    ends = "" if score["low"] is None else f"  [{score['low']:.2f}, {score['high']:.2f}]"
    return f"{score['value']:.2f}{ends}"


def _bucket(bucket: Mapping[str, Any]) -> str:
    return f"{bucket['from']} to {bucket['to']}: {bucket['bleu']:.1f} ({bucket['sentences']} sentences)"


def align(arguments: Sequence[str], conf: Path) -> int:
    """Carry out ``attnlab align``."""
    parser = _Parser(
        prog="attnlab align",
        description="Align the words of two line-aligned files, at white space, by what a trained model looks at when it is "
        "made to write the second. With known links, tell how many it finds.",
        allow_abbrev=False,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    parser.add_argument("--files", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"), help="one sentence a line")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the links to a file, and not to standard output")
    parser.add_argument("--format", choices=["pharaoh", "talp"], default="pharaoh", help="count words from 0 (default) or 1")
    parser.add_argument("--shift", type=int, choices=[0, 1], help="read row t as about token t (0) or t - 1 (1)")
    parser.add_argument("--reverse", type=Path, metavar="RUN", help="a run of the other direction, to symmetrise with")
    parser.add_argument("--symmetrise", default="grow-diagonal", metavar="HOW", help="how (default: grow-diagonal)")
    parser.add_argument("--gold", type=Path, metavar="FILE", help="known links, i-j sure and ipj possible")
    parser.add_argument("--gold-from", type=int, choices=[0, 1], default=0, help="what these count words from")
    parser.add_argument("--gold-transposed", action="store_true", help="these have the target first")
    parser.add_argument("--heads", action="store_true", help="tell every head of every layer; needs --gold")
    parser.add_argument("--checkpoint", default="best.ckpt", help="of the run: best.ckpt (default) or last.ckpt")
    options = parser.parse_args(arguments)
    if options.heads and not options.gold:
        raise UserError("--heads tells how well each head agrees with known links: add --gold FILE")
    for path in (*options.files, *([options.gold] if options.gold else [])):
        if not path.is_file():
            raise UserError(f"no file {path}")
    from attnlab.data.corpora import decode_lines, read_bytes, read_pair
    from attnlab.evaluation.alignment import SYMMETRISATIONS, Gold, parse, score, transposed, written
    from attnlab.studies.evaluate import word_links
    from attnlab.studies.translator import load

    if options.symmetrise not in SYMMETRISATIONS:
        raise UserError(f"--symmetrise is one of {', '.join(SYMMETRISATIONS)}, not {options.symmetrise!r}")
    text = read_pair(*options.files, drop_empty=False)
    words = [[line.split() for line in side] for side in (text.source, text.target)]
    translator = load(options.run, checkpoint=options.checkpoint)
    shift = _shift(options.run, translator) if options.shift is None else options.shift
    scored = translator.score(text.source, text.target, heads=options.heads)
    links = word_links(words[0], words[1], [sentence.weights for sentence in scored], scored, shift)
    if options.reverse:
        other = load(options.reverse, checkpoint=options.checkpoint)
        back = other.score(text.target, text.source)
        read = _shift(options.reverse, other) if options.shift is None else options.shift
        found = word_links(words[1], words[0], [sentence.weights for sentence in back], back, read)
        links = [SYMMETRISATIONS[options.symmetrise](a, transposed(b)) for a, b in zip(links, found, strict=True)]
    lines = [written(found, base=int(options.format == "talp")) for found in links]
    if options.output:
        options.output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    elif not options.gold:
        print("\n".join(lines))
    if not options.gold:
        return 0
    place = f"{options.gold}, line "
    known = decode_lines(read_bytes(options.gold), options.gold)
    gold = [parse(line, base=options.gold_from, place=f"{place}{number}") for number, line in enumerate(known, 1)]
    if options.gold_transposed:
        gold = [Gold(transposed(g.sure), transposed(g.possible)) for g in gold]
    rows = {"the attention that is reported" if not options.reverse else f"both directions, {options.symmetrise}": links}
    for name in scored[0].heads if options.heads else ():
        weights = [sentence.heads[name] for sentence in scored]
        rows[name] = word_links(words[0], words[1], weights, scored, shift)
    _show_alignments({name: vars(score(found, gold)) for name, found in rows.items()}, shift)
    return 0


def _shift(run: Path, translator: "Translator") -> int:
    """Choose how to read the weights on the validation set of a run's corpus, if that has alignments and is at hand."""
    from omegaconf import OmegaConf

    from attnlab.studies.evaluate import chosen_shift
    from attnlab.studies.wiring import build

    try:
        val = build(OmegaConf.load(run / "config.yaml").data).load()["val"]
    except UserError:
        return 0
    return chosen_shift(translator, val)


def _show_alignments(scores: Mapping[str, Mapping[str, Any]], shift: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "AER", "precision", "recall", "links")
    for name, result in scores.items():
        shares = (f"{result[key]:.1%}" for key in ("aer", "precision", "recall"))
        table.add_row(name, *shares, f"{result['links']:,}")
    Console().print(table)
    print(f"row t of the weights is read as about token {'t' if shift == 0 else 't - 1'}")


def draw(arguments: Sequence[str], conf: Path) -> int:
    """Carry out ``attnlab draw``."""
    parser = _Parser(prog="attnlab draw", description="Draw what trained models do, as PNG, SVG or PDF.", allow_abbrev=False)
    parser.add_argument(
        "what", choices=["heatmaps", "lengths", "curves"], help="attention on sentences; BLEU by length; training"
    )
    parser.add_argument("run", nargs="+", type=Path, metavar="RUN", help="folders of finished runs, drawn together")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="ending in .png, .svg or .pdf")
    parser.add_argument("--sentence", help="of heatmaps: what to translate")
    parser.add_argument("--translation", help="of heatmaps: what to write, instead of the model's own translation")
    parser.add_argument("--links", default="", metavar="I-J ...", help="of heatmaps: known links of tokens from 0, ringed")
    parser.add_argument("--test", default="test", metavar="NAME", help="of lengths: the test set (default: test)")
    parser.add_argument("--metric", default="val/bleu", help="of curves: what to draw (default: val/bleu)")
    options = parser.parse_intermixed_args(arguments)
    if options.output.suffix not in (".png", ".svg", ".pdf"):
        raise UserError(f"--output ends in .png, .svg or .pdf, not {options.output.suffix!r}")
    if options.what == "heatmaps" and not options.sentence:
        raise UserError("heatmaps are of a sentence: add --sentence TEXT")
    from attnlab.evaluation import plots

    names = _names(options.run)
    if options.what == "heatmaps":
        figure = _draw_heatmaps(options, names)
    elif options.what == "lengths":
        figure = plots.by_length({name: _lengths(run, options.test) for name, run in names.items()}, title=options.test)
    else:
        records = {name: _record(run, options.metric) for name, run in names.items()}
        figure = plots.curves(records, options.metric)
    plots.save(figure, options.output)
    print(f"written to {options.output}")
    return 0


def _names(runs: Sequence[Path]) -> dict[str, Path]:
    """Name runs, briefly, by what tells them apart in their paths, which are NAME/VARIANT/seed=N."""
    parts = [{*run.resolve().parts[-3:-2], *run.resolve().parts[-2].split(","), run.resolve().name} for run in runs]
    shared = (
        set.intersection(*parts) if len(parts) > 1 else {part for part in parts[0] if part != runs[0].resolve().parent.name}
    )
    names = {}
    for own, run in zip(parts, runs, strict=True):
        telling = sorted(part.removeprefix("attention=") for part in own - shared)
        names["\n".join(textwrap.wrap(", ".join(telling), 40)) or run.name] = run
    if len(names) < len(runs):
        raise UserError("the same run is named twice")
    return names


def _draw_heatmaps(options: argparse.Namespace, names: Mapping[str, Path]) -> Any:
    from attnlab.evaluation.alignment import parse
    from attnlab.evaluation.plots import side_by_side
    from attnlab.studies.translator import load

    looks = {}
    for name, run in names.items():
        translator = load(run)
        if options.translation:
            (scored,) = translator.score([options.sentence], [options.translation])
            looks[name] = (scored.weights, scored.source, scored.tokens)
        else:
            (found,) = translator.translate([options.sentence])
            if not found.tokens:
                raise UserError("--sentence is empty")
            looks[name] = (found.weights, found.source, found.tokens)
    return side_by_side(looks, gold=parse(options.links, place="--links").possible)


def _lengths(run: Path, test: str) -> list[dict[str, Any]]:
    path = run / "evaluations" / "default.json"
    if not path.is_file():
        raise UserError(f"{run} was not evaluated yet: attnlab evaluate {run}")
    tests = json.loads(path.read_text(encoding="utf-8"))["tests"]
    if test not in tests:
        raise UserError(f"{path} has no test set {test!r}: there is {', '.join(tests)}")
    buckets: list[dict[str, Any]] = tests[test]["by_length"]
    return buckets


def _record(run: Path, metric: str) -> list[dict[str, float]]:
    path = run / "metrics.jsonl"
    if not path.is_file():
        raise UserError(f"{run} holds no metrics.jsonl: name the folder of a run, runs/NAME/VARIANT/seed=N")
    lines: list[dict[str, float]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    known = sorted({name for line in lines for name in line} - {"epoch", "step"})
    if metric not in known:
        raise UserError(f"{path} has no metric {metric!r}: there is {', '.join(known)}")
    return lines


def compare(arguments: Sequence[str], conf: Path) -> int:
    """Carry out ``attnlab compare``."""
    parser = _Parser(
        prog="attnlab compare",
        description="Is a run, or a variant over its seeds, better than another? Paired tests on the same sentences, by "
        "sacreBLEU, with Holm's correction over all comparisons.",
        allow_abbrev=False,
    )
    parser.add_argument("baseline", type=Path, metavar="BASELINE", help="folder of a run, or of a variant with several seeds")
    parser.add_argument("system", type=Path, nargs="+", metavar="SYSTEM", help="likewise, with the same seeds")
    parser.add_argument("--test", default="test", metavar="NAME", help="test set (default: test)")
    parser.add_argument("--method", choices=["randomization", "bootstrap"], default="randomization")
    parser.add_argument("--samples", type=int, default=10_000, metavar="N", help="shufflings or resamplings (10000)")
    options = parser.parse_intermixed_args(arguments)
    if options.samples < 100:
        raise UserError("--samples must be 100 or more: a p-value cannot be told with fewer")
    baseline = _written(options.baseline, options.test)
    systems = {str(path): _written(path, options.test) for path in options.system}
    for name, other in systems.items():
        if list(other) != list(baseline):
            raise UserError(
                f"{name} has {', '.join(other)}, but {options.baseline} {', '.join(baseline)}: compare the same seeds"
            )
    references, lowercase = _references(options.baseline, options.test)
    from rich.console import Console
    from rich.table import Table

    from attnlab.evaluation.significance import compare as test

    joined = {name: [line for lines in other.values() for line in lines] for name, other in systems.items()}
    own = [line for lines in baseline.values() for line in lines]
    found = test(own, joined, references * len(baseline), test=options.method, lowercase=lowercase, samples=options.samples)
    table = Table("system", "BLEU", "difference", "p", "p, corrected", title=f"{options.test}, against {options.baseline}")
    for name, result in found.items():
        numbers = (f"{result.value:.2f}", f"{result.difference:+.2f}", f"{result.p:.4f}", f"{result.corrected:.4f}")
        table.add_row(name, *numbers)
    Console().print(table)
    print(f"paired {options.method}, {options.samples} samples; p corrected by Holm over {len(found)} comparisons")
    return 0


def _written(folder: Path, test: str) -> dict[str, list[str]]:
    """Return the hypotheses of each seed."""
    found = {}
    for run in _seeds(folder):
        path = run / "hypotheses" / f"{test}.txt"
        if not path.is_file():
            there = ", ".join(sorted(other.stem for other in path.parent.glob("*.txt")))
            raise UserError(f"{run} has no hypotheses of {test!r}: there is {there}")
        found[run.name] = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return found


def _seeds(folder: Path) -> list[Path]:
    runs = [folder] if (folder / "result.json").is_file() else sorted(folder.glob("seed=*"))
    finished = [run for run in runs if (run / "result.json").is_file()]
    if not finished:
        raise UserError(f"{folder} holds no finished run")
    return finished


def _references(folder: Path, test: str) -> tuple[list[str], bool]:
    from omegaconf import OmegaConf

    from attnlab.studies.wiring import build

    config = OmegaConf.load(_seeds(folder)[0] / "config.yaml")
    return build(config.data).load()[test].target, bool(config.tokenizer.get("lowercase", False))


def _runs(arguments: Sequence[str]) -> list[Path]:
    runs = [Path(argument) for argument in arguments if not SEARCH_OVERRIDE.match(argument)]
    if not runs:
        raise UserError("name a run: the folder that attnlab train wrote, runs/NAME/VARIANT/seed=N")
    return runs


def _overrides(arguments: Sequence[str]) -> list[str]:
    return [argument for argument in arguments if SEARCH_OVERRIDE.match(argument)]


def _load(options: argparse.Namespace, conf: Path) -> "Translator":
    import torch

    from attnlab.studies.translator import load

    try:
        device = torch.device(options.device)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {options.device}: {str(error).splitlines()[0]}") from error
    runs = _runs(options.run)
    search = _search(runs[0], _overrides(options.run), conf)
    return load(
        *runs,
        search=search,
        checkpoint=options.checkpoint,
        device=device,
        batch_size=options.batch_size,
        replace_unknown=options.replace_unknown,
    )


def _search(run: Path, overrides: Sequence[str], conf: Path) -> "Search | None":
    """Return the search that overrides ask for: another one, or the run's own with other settings; None if they are none."""
    if not overrides or not (run / "config.yaml").is_file():  # opening the run tells what is wrong with it
        return None
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    from attnlab.studies.wiring import build, check

    config: Any
    if any(re.match(r"search(/\w+)?=", override) for override in overrides):
        with initialize_config_dir(str(conf), version_base="1.3"):
            config = compose("train", list(overrides))
    else:
        config = OmegaConf.merge(OmegaConf.load(run / "config.yaml"), OmegaConf.from_dotlist(list(overrides)))
    check(config.search, where="search")
    search: Search = build(config.search)
    return search
