"""The commands that use trained models: translate, evaluate, compare. Nothing heavy is imported before they start."""

import argparse
import json
import re
import sys
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
    parser.add_argument("--replace-unknown", action="store_true", help="write the most attended source word for an unknown one")
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
            for line, found in zip(chunk, translator.n_best(chunk, replace_unknown=options.replace_unknown), strict=True):
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
    options = parser.parse_intermixed_args(arguments)
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
        results[name], hypotheses[name] = measure(
            translator, text, val=val, samples=options.bootstrap, replace_unknown=options.replace_unknown
        )
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
    return load(*runs, search=search, checkpoint=options.checkpoint, device=device, batch_size=options.batch_size)


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
