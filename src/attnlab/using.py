"""The commands that use trained models; nothing heavy is imported before they start."""

import argparse
import io
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from attnlab.errors import UserError

if TYPE_CHECKING:
    from attnlab.evaluation.alignment import Gold
    from attnlab.search import Search
    from attnlab.studies.translator import Translator
    from attnlab.tasks.translation.corpora import ParallelText
    from attnlab.training.outputs import Translation

SEARCH_OVERRIDE = re.compile(r"search([./][\w./]+)?=")
LABEL = re.compile(r"[\w.-]+")
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
    _check_output(options.output, [options.input])
    if options.input is None and sys.stdin is None:
        raise UserError("standard input is closed: name a file with --input")
    translator = _load(options, conf)
    _check_n_best(options.n_best, translator.search)
    if options.input:
        for first, chunk in _chunks(options.input, CHUNK):
            translator.check_lengths(chunk, place=f"{options.input}, line", first=first)
    live = options.input is None and sys.stdin.isatty()
    if live:
        print("one sentence a line; Ctrl-D ends", file=sys.stderr)
    with _written_to(options.output) as out:
        for first, chunk in _chunks(options.input, 1 if live else CHUNK):
            try:
                translator.check_lengths(chunk, place="line", first=first)
            except UserError as error:
                if not live:
                    raise
                print(f"attnlab: {error}", file=sys.stderr)
                continue
            for line, found in zip(chunk, translator.n_best(chunk), strict=True):
                _write(line, found[: options.n_best], options, out)
            out.flush()
    return 0


def _check_n_best(count: int, search: "Search") -> None:
    if count <= search.kept:
        return
    if search.kept_by is None:
        raise UserError(f"--n-best {count}: greedy search finds one translation: add search=beam search.width={count}")
    setting = f"search.{search.kept_by}"
    raise UserError(f"--n-best {count}: {setting} is {search.kept}: add {setting}={count}")


def _check_output(path: Path | None, read: Iterable[Path | None] = ()) -> None:
    """Refuse a file that cannot be written, or that is read too, before anything is computed."""
    if path is None:
        return
    try:
        if path.is_dir():
            raise UserError(f"--output {path} is a folder: name a file")
        if not path.parent.is_dir():
            raise UserError(f"--output {path}: there is no folder {path.parent}")
        if path.exists() and any(other.samefile(path) for other in read if other):
            raise UserError(f"--output {path} is what is read: name another file, or nothing would be left of it")
    except OSError as error:
        raise UserError(f"--output {path}: {error.strerror}") from error
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"--output {path}: no permission to write there")


@contextmanager
def _written_to(path: Path | None) -> Iterator[Any]:
    """Open a file to write to, or standard output, for which a file system or a terminal may have another encoding."""
    if path is None:
        if sys.stdout is None:
            raise UserError("standard output is closed: name a file with --output")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
        return
    try:
        with path.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise UserError(f"--output {path}: {error.strerror}") from error


def _chunks(path: Path | None, size: int) -> Iterator[tuple[int, list[str]]]:
    """Yield lines of a file or of standard input, so many at a time, with the number of the first."""
    lines, first = _lines(path), 1
    while chunk := list(islice(lines, size)):
        yield first, chunk
        first += len(chunk)


def _lines(path: Path | None) -> Iterator[str]:
    """Yield lines without their ends; what is not UTF-8 is told by its number."""
    try:
        stream = path.open("rb") if path else sys.stdin.buffer
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
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
    # Line i * N + k belongs to sentence i, whatever was found; nothing is what an empty line is translated as.
    nothing = ("-inf\t" if options.scores else "") + ("\t" if options.alignments else "")
    out.write(f"{nothing}\n" * (options.n_best - len(found)))


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
    _check_label(options.label)
    translator = _load(options, conf)
    from attnlab.studies.evaluate import earlier, save
    from attnlab.studies.evaluate import evaluate as measure

    runs = _runs(options.run)
    texts, val = _texts(runs[0], options)
    files = [str(path.resolve()) for path in options.files] if options.files else None
    settings = {
        "others": [str(run.resolve()) for run in runs[1:]],
        "search": _overrides(options.run),
        "checkpoint": options.checkpoint,
        "replace_unknown": translator.replace_unknown,
    }
    before = earlier(runs[0], options.label, settings, dict.fromkeys(texts, files))
    results, hypotheses = {}, {}
    for name, text in texts.items():
        measured, hypotheses[name] = measure(translator, text, val=val, samples=options.bootstrap)
        results[name] = {**measured, "files": files}
    told = {"runs": [str(run) for run in runs], **settings, "tests": {**before, **results}}
    path = save(runs[0], options.label, told, hypotheses)
    _show(results)
    print(f"written to {path}")
    return 0


def _check_label(label: str) -> None:
    if not LABEL.fullmatch(label):
        raise UserError(f"--label is part of a file's name: letters, digits, _ . and -, not {label!r}")


def _corpus(run: Path) -> Any:
    """Return the corpus of a run."""
    from attnlab.studies.translator import as_told_by, read_config
    from attnlab.studies.wiring import build

    config = read_config(run)
    with as_told_by(run):
        return build(config.data)


def _texts(run: Path, options: argparse.Namespace) -> tuple[dict[str, "ParallelText"], "ParallelText | None"]:
    """Return the test sets asked for, and the validation set."""
    from attnlab.tasks.translation.corpora import read_pair

    if options.files:
        for path in options.files:
            if not path.is_file():
                raise UserError(f"no file {path}")
        return {options.files[0].stem: read_pair(*options.files, drop_empty=False)}, None
    corpus = _corpus(run)
    names = list(corpus.test_names) if options.test is None else options.test.split(",")
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
    _check_output(options.output, [*options.files, options.gold])
    from attnlab.evaluation.alignment import SYMMETRISATIONS, score, transposed, written
    from attnlab.studies.evaluate import REPORTED, by_head, word_links
    from attnlab.studies.translator import load
    from attnlab.tasks.translation.corpora import read_pair

    if options.symmetrise not in SYMMETRISATIONS:
        raise UserError(f"--symmetrise is one of {', '.join(SYMMETRISATIONS)}, not {options.symmetrise!r}")
    text = read_pair(*options.files, drop_empty=False)
    words = [[line.split() for line in side] for side in (text.source, text.target)]
    gold = _gold(options, words) if options.gold else []
    translator = load(options.run, checkpoint=options.checkpoint)
    other = load(options.reverse, checkpoint=options.checkpoint) if options.reverse else None
    if other and other.languages != translator.languages[::-1]:
        raise UserError(
            f"--reverse {options.reverse} translates {' to '.join(other.languages)}, and {options.run} "
            f"{' to '.join(translator.languages)}: name a run of the other direction"
        )
    scored = translator.score(text.source, text.target, heads=options.heads)
    heads = by_head(scored)
    looked = {REPORTED: [sentence.weights for sentence in scored], **heads}
    shifts = _shifts(options.run, translator, list(looked), options)
    rows = {name: word_links(words[0], words[1], looked[name], scored, shifts[name]) for name in looked}
    readings = {name: READINGS[shifts[name]] for name in looked}
    links = rows[REPORTED]
    if other:
        back = other.score(text.target, text.source)
        read = _shifts(options.reverse, other, [REPORTED], options)[REPORTED]
        found = word_links(words[1], words[0], [sentence.weights for sentence in back], back, read)
        links = [SYMMETRISATIONS[options.symmetrise](a, transposed(b)) for a, b in zip(links, found, strict=True)]
        both = f"both directions, {options.symmetrise}"
        rows = {both: links, **{name: rows[name] for name in heads}}
        readings[both] = f"{readings[REPORTED]}; back, {READINGS[read]}"
    lines = [written(found, base=int(options.format == "talp")) for found in links]
    if options.output:
        with _written_to(options.output) as out:
            out.writelines(f"{line}\n" for line in lines)
    elif not options.gold:
        print("\n".join(lines))
    if options.gold:
        _show_alignments({name: vars(score(found, gold)) for name, found in rows.items()}, readings)
    return 0


READINGS = ("t", "t - 1")
"""Which token a row of weights is read as about, by the shift."""


def _gold(options: argparse.Namespace, words: Sequence[Sequence[Sequence[str]]]) -> list["Gold"]:
    """Read known links of the sentence pairs."""
    from attnlab.evaluation.alignment import Gold, check_inside, parse, transposed
    from attnlab.tasks.translation.corpora import decode_lines, read_bytes

    lines = decode_lines(read_bytes(options.gold), options.gold)
    if len(lines) != len(words[0]):
        raise UserError(
            f"{options.gold} has {len(lines)} lines but {options.files[0]} has {len(words[0])}: one a sentence pair"
        )
    found = []
    for number, (line, source, target) in enumerate(zip(lines, *words, strict=True), 1):
        place = f"{options.gold}, line {number}"
        gold = parse(line, base=options.gold_from, place=place)
        if options.gold_transposed:
            gold = Gold(transposed(gold.sure), transposed(gold.possible))
        try:
            check_inside(gold.possible, len(source), len(target), place=place, base=options.gold_from)
        except UserError as error:
            hint = "" if options.gold_from else "; if links count from 1, add --gold-from 1"
            raise UserError(f"{error}{hint}") from None
        found.append(gold)
    return found


def _shifts(run: Path, translator: "Translator", names: Sequence[str], options: argparse.Namespace) -> dict[str, int]:
    """Choose how to read some weights, by name, on the validation set of a run's corpus; say so if it cannot be done there."""
    from attnlab.studies.evaluate import chosen_shifts

    if options.shift is not None:
        return dict.fromkeys(names, options.shift)
    try:
        val, reason = _corpus(run).load()["val"], "has no links"
    except UserError:
        val, reason = None, "is not at hand"
    chosen = chosen_shifts(translator, val, heads=len(names) > 1)
    if not chosen:
        told = f"row t of the weights is read as about token t, since the validation set of {run} {reason}"
        print(f"attnlab: {told}; --shift 1 reads it as about token t - 1", file=sys.stderr)
    return chosen or dict.fromkeys(names, 0)


def _show_alignments(scores: Mapping[str, Mapping[str, Any]], readings: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "AER", "precision", "recall", "links", "row t is about token")
    for name, result in scores.items():
        shares = (f"{result[key]:.1%}" for key in ("aer", "precision", "recall"))
        table.add_row(name, *shares, f"{result['links']:,}", readings[name])
    Console().print(table)


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
    parser.add_argument("--label", default="default", help="of lengths: the evaluation's, as attnlab evaluate was told")
    parser.add_argument("--metric", default="val/bleu", help="of curves: what to draw (default: val/bleu)")
    options = parser.parse_intermixed_args(arguments)
    if options.output.suffix not in (".png", ".svg", ".pdf"):
        raise UserError(f"--output ends in .png, .svg or .pdf, not {options.output.suffix!r}")
    if options.what == "heatmaps" and not options.sentence:
        raise UserError("heatmaps are of a sentence: add --sentence TEXT")
    _check_output(options.output)
    _check_label(options.label)
    from attnlab.evaluation import plots

    names = _names(options.run)
    if options.what == "heatmaps":
        figure = _draw_heatmaps(options, names)
    elif options.what == "lengths":
        figure = plots.by_length({name: _lengths(run, options) for name, run in names.items()}, title=options.test)
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
    from attnlab.evaluation.alignment import check_inside, parse
    from attnlab.evaluation.plots import side_by_side
    from attnlab.studies.translator import load

    looks = {}
    known = parse(options.links, place="--links").possible
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
        _, source, target = looks[name]
        check_inside(known, len(source), len(target), place=f"--links, {run}")
    return side_by_side(looks, gold=known)


def _lengths(run: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    from attnlab.studies.evaluate import read_evaluation

    path = run / "evaluations" / f"{options.label}.json"
    if not path.is_file():
        label = "" if options.label == "default" else f" --label {options.label}"
        raise UserError(f"{run} was not evaluated yet: attnlab evaluate {run}{label}")
    tests = read_evaluation(path)["tests"]
    if options.test not in tests:
        raise UserError(f"{path} has no test set {options.test!r}: there is {', '.join(tests)}")
    buckets: list[dict[str, Any]] = tests[options.test]["by_length"]
    return buckets


def _record(run: Path, metric: str) -> list[dict[str, float]]:
    path = run / "metrics.jsonl"
    if not path.is_file():
        raise UserError(f"{run} holds no metrics.jsonl: name the folder of a run, runs/NAME/VARIANT/seed=N")
    lines: list[dict[str, float]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        try:
            lines.append({**json.loads(line)})
            lines[-1]["epoch"] += 0
        except (ValueError, LookupError, TypeError) as error:
            raise UserError(f"{path}, line {number}, is damaged: no record of an epoch") from error
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
    parser.add_argument("system", type=Path, nargs="+", metavar="SYSTEM", help="likewise; variants with the same seeds")
    parser.add_argument("--test", default="test", metavar="NAME", help="test set (default: test)")
    parser.add_argument("--label", help="compare what attnlab evaluate wrote under this label, instead of each run's own test")
    parser.add_argument("--method", choices=["randomization", "bootstrap"], default="randomization")
    parser.add_argument("--samples", type=int, default=10_000, metavar="N", help="shufflings or resamplings (10000)")
    options = parser.parse_intermixed_args(arguments)
    if options.samples < 100:
        raise UserError("--samples must be 100 or more: a p-value cannot be told with fewer")
    if options.label is not None:
        _check_label(options.label)
    written = {folder: _written(folder, options.test, options.label) for folder in (options.baseline, *options.system)}
    baseline = written[options.baseline]
    _check_comparable(written, options.baseline)
    from rich.console import Console
    from rich.table import Table

    from attnlab.evaluation.significance import compare as test

    joined = {str(folder): [line for run in written[folder] for line in run.hypotheses] for folder in options.system}
    found = test(
        [line for run in baseline for line in run.hypotheses],
        joined,
        baseline[0].references * len(baseline),
        test=options.method,
        lowercase=baseline[0].lowercase,
        language=baseline[0].language,
        samples=options.samples,
    )
    table = Table("system", "BLEU", "difference", "p", "p, corrected", title=f"{options.test}, against {options.baseline}")
    for name, result in found.items():
        numbers = (f"{result.value:.2f}", f"{result.difference:+.2f}", f"{result.p:.4f}", f"{result.corrected:.4f}")
        table.add_row(name, *numbers)
    Console().print(table)
    print(f"paired {options.method}, {options.samples} samples; p corrected by Holm over {len(found)} comparisons")
    return 0


@dataclass(frozen=True)
class _Written:
    """What a run wrote for a test set, and what it should have."""

    run: Path
    hypotheses: list[str]
    references: list[str]
    lowercase: bool
    language: str


def _check_comparable(written: Mapping[Path, Sequence[_Written]], baseline: Path) -> None:
    """Refuse systems that were not tested on the same sentences in the same way."""
    first = written[baseline][0]
    own = [w.run.name for w in written[baseline]]
    for folder, found in written.items():
        seeds = [w.run.name for w in found]
        runs_alone = [w.run for w in (first, found[0])] == [baseline, folder]
        if seeds != own and not runs_alone:
            raise UserError(f"{folder} has {', '.join(seeds)}, but {baseline} {', '.join(own)}: compare the same seeds")
        for other in found:
            if len(other.hypotheses) != len(other.references):
                counts = f"{len(other.hypotheses)} hypotheses, but there are {len(other.references)} references"
                raise UserError(f"{other.run} has {counts}: its test set or its corpus was changed")
            if other.references != first.references:
                raise UserError(f"{other.run} was tested against other references than {first.run}: compare one test set")
            if other.lowercase != first.lowercase:
                lower, mixed = (other, first) if other.lowercase else (first, other)
                raise UserError(f"{lower.run} writes lower case alone and {mixed.run} does not: their BLEU is not comparable")


def _written(folder: Path, test: str, label: str | None) -> list[_Written]:
    """Return what each seed of a folder wrote."""
    from omegaconf import OmegaConf

    from attnlab.studies.translator import read_config

    found = []
    for run in _seeds(folder):
        beginning = "" if label is None else f"{label}."
        path = run / ("hypotheses" if label is None else "evaluations") / f"{beginning}{test}.txt"
        if not path.is_file():
            there = sorted(other.stem.removeprefix(beginning) for other in path.parent.glob(f"{beginning}*.txt"))
            missing = "hypotheses" if label is None else f"evaluation {label!r}"
            raise UserError(f"{run} has no {missing} of {test!r}: there is {', '.join(there) or 'none at all'}")
        lowercase = bool(OmegaConf.select(read_config(run), "tokenizer.lowercase", default=False))
        found.append(_Written(run, _kept_lines(path), _references(run, test, label), lowercase, _language(run)))
    return found


def _kept_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _seeds(folder: Path) -> list[Path]:
    runs = [folder] if (folder / "result.json").is_file() else sorted(folder.glob("seed=*"))
    finished = [run for run in runs if (run / "result.json").is_file()]
    if not finished:
        raise UserError(f"{folder} holds no finished run")
    return finished


def _references(run: Path, test: str, label: str | None) -> list[str]:
    """Return the references that a run was tested against: those that it kept, or else its corpus'."""
    from attnlab.studies.evaluate import read_evaluation
    from attnlab.tasks.translation.corpora import decode_lines, read_bytes

    if label is not None:
        files = read_evaluation(run / "evaluations" / f"{label}.json")["tests"].get(test, {}).get("files")
        if files:
            return decode_lines(read_bytes(Path(files[1])), Path(files[1]))
    kept = run / "texts" / f"{test}.target.txt"
    if kept.is_file():
        return _kept_lines(kept)
    texts = _corpus(run).load()
    if test not in texts:
        raise UserError(f"{run}: its corpus has no test set {test!r}: there is {', '.join(texts)}")
    target: list[str] = texts[test].target
    return target


def _language(run: Path) -> str:
    """Return the code of a run's target language."""
    from attnlab.studies.translator import read_text

    if not (run / "text.json").is_file():  # a run of long ago, whose hypotheses can be compared all the same
        return ""
    return str(read_text(run)["languages"][1])


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
    from omegaconf import DictConfig, OmegaConf
    from yaml import YAMLError  # type: ignore[import-untyped, unused-ignore]

    from attnlab.studies.translator import as_told_by, read_config
    from attnlab.studies.wiring import build, check

    config: Any
    groups = [override for override in overrides if re.match(r"search/\w+=", override)]
    with initialize_config_dir(str(conf), version_base="1.3"):
        if any(override.startswith("search=") for override in overrides):
            config = compose("train", list(overrides))
        else:
            config = read_config(run)
            for override in groups:
                key = override.partition("=")[0].replace("/", ".")
                OmegaConf.update(config, key, OmegaConf.select(compose("train", [override]), key), merge=False, force_add=True)
            try:
                dotted = OmegaConf.from_dotlist([override for override in overrides if override not in groups])
            except YAMLError as error:
                raise UserError(f"{' '.join(overrides)}: a value is no YAML ({' '.join(str(error).split())})") from error
            config = OmegaConf.merge(config, dotted)
    if not isinstance(config.get("search"), DictConfig):
        raise UserError(f"{run}/config.yaml is damaged: it holds no search")
    check(config.search, where="search")
    with as_told_by(run):
        search: Search = build(config.search)
    return search
