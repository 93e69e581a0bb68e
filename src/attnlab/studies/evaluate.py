"""Evaluating a trained model after the fact, on any test set."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch import Tensor

from attnlab.data.links import WORDS, runs
from attnlab.errors import UserError
from attnlab.evaluation.alignment import Gold, Links, from_weights, score
from attnlab.evaluation.bleu import bleu, chrf, ter, tokenized_bleu
from attnlab.evaluation.looks import looks
from attnlab.studies.translator import Scored, Translator
from attnlab.tasks.translation.corpora import ParallelText

EDGES = (1, 6, 11, 16, 21, 31, 41, 61)
"""Where a bucket of source lengths begins, in tokens."""

SHIFTS = (0, 1)
REPORTED = "the attention that is reported"


def evaluate(
    translator: Translator, text: ParallelText, *, val: ParallelText | None, samples: int
) -> tuple[dict[str, Any], list[str]]:
    """Translate a test set and measure everything about it.

    Args:
        translator: what to evaluate.
        text: the test set.
        val: the validation set, if it has alignments: on it the reading of the attention is chosen.
        samples: of the bootstrap for confidence intervals; 1 makes none.

    Returns:
        The measures, and the hypotheses.
    """
    translations = translator.translate(text.source)
    hypotheses = [translation.text for translation in translations]
    lowercase, language = translator.tokenizers[1].lowercase, translator.languages[1]
    measures: dict[str, Any] = {
        "sentences": len(hypotheses),
        "bleu": asdict(bleu(hypotheses, text.target, lowercase=lowercase, samples=samples, language=language)),
        "chrf": asdict(chrf(hypotheses, text.target, lowercase=lowercase, samples=samples)),
        "ter": asdict(ter(hypotheses, text.target, lowercase=lowercase, samples=samples)),
        "bleu_tok_lc": asdict(tokenized_bleu(hypotheses, text.target, language=language)),
    }
    unknown = translator.vocabularies[1].tokens[1]
    written = [translation.tokens[:-1] for translation in translations]
    measures["unknown"] = sum(tokens.count(unknown) for tokens in written) / max(1, sum(map(len, written)))
    whole = [index for index, sentence in enumerate(text.source) if sentence.strip()]
    scored = translator.score([text.source[i] for i in whole], [text.target[i] for i in whole])
    measures |= forced(scored)
    measures["length_ratio"] = sum(map(len, written)) / max(1, sum(len(s.tokens) - 1 for s in scored))
    lengths = dict(zip(whole, (len(s.source) - 1 for s in scored), strict=True))
    sizes = [lengths.get(i, 0) for i in range(len(hypotheses))]
    measures["by_length"] = by_length(hypotheses, text.target, sizes, lowercase, language)
    if any(s.weights.abs().sum() > 0 for s in scored):
        measures["attention"] = asdict(looks((s.weights, s.source) for s in scored))
        if text.alignments is not None:
            measures["alignment"] = alignment(translator, text, scored, val)
    return measures, hypotheses


def forced(scored: Sequence[Scored]) -> dict[str, float]:
    """Return what forced decoding measures: nats a token, perplexity, token accuracy, share of unknown target tokens."""
    tokens = max(1, sum(len(s.tokens) for s in scored))
    loss = -sum(s.log_probability for s in scored) / tokens
    return {
        "loss": loss,
        "perplexity": math.exp(min(loss, 700.0)),
        "accuracy": sum(sum(s.right) for s in scored) / tokens,
        "unknown_reference": sum(s.unknown for s in scored) / tokens,
    }


def by_length(
    hypotheses: Sequence[str], references: Sequence[str], lengths: Sequence[int], lowercase: bool, language: str = ""
) -> list[dict[str, float]]:
    """Return BLEU of sentences of similar source length: the classic figure that shows what attention is for."""
    buckets = []
    for low, high in pairwise([*EDGES, 10**9]):
        chosen = [index for index, length in enumerate(lengths) if low <= length < high]
        if chosen:
            pair = [hypotheses[i] for i in chosen], [references[i] for i in chosen]
            value = bleu(*pair, lowercase=lowercase, language=language).value
            buckets.append({"from": low, "to": min(high - 1, max(lengths)), "sentences": len(chosen), "bleu": value})
    return buckets


def alignment(translator: Translator, text: ParallelText, scored: Sequence[Scored], val: ParallelText | None) -> dict[str, Any]:
    """Score the attention under forced decoding as a word alignment.

    Row t of the weights may be read as about the token that it wrote or about the one before. The reading is chosen on the
    validation set; without one it is the first.
    """
    shift = chosen_shift(translator, val)
    result = score(text_links(translator, text, [s.weights for s in scored], scored, shift), _gold(text))
    return {**asdict(result), "shift": shift}


def chosen_shift(translator: Translator, val: ParallelText | None) -> int:
    """Return the reading of the weights that agrees best with the alignments of the validation set; 0 if it has none."""
    return chosen_shifts(translator, val).get(REPORTED, 0)


def chosen_shifts(translator: Translator, val: ParallelText | None, *, heads: bool = False) -> dict[str, int]:
    """Choose the reading of the attention that is reported and, if asked for, of every head, by its name.

    Returns:
        The readings that agree best with the alignments of the validation set; empty if it has none.
    """
    if val is None or val.alignments is None:
        return {}
    scored, gold = translator.score(val.source, val.target, heads=heads), _gold(val)
    looked = {REPORTED: [s.weights for s in scored], **by_head(scored)}

    def choose(weights: Sequence[Tensor]) -> int:
        return min(SHIFTS, key=lambda shift: score(text_links(translator, val, weights, scored, shift), gold).aer)

    return {name: choose(weights) for name, weights in looked.items()}


def by_head(scored: Sequence[Scored]) -> dict[str, list[Tensor]]:
    """Return the weights of each head, sentence by sentence; empty if they were not asked for."""
    return {name: [s.heads[name] for s in scored] for name in (scored[0].heads if scored else ())}


def text_links(
    translator: Translator, text: ParallelText, weights: Sequence[Tensor], scored: Sequence[Scored], shift: int
) -> list[Links]:
    """Turn weights over tokens into links between the words that the text's alignments count."""
    split = WORDS[text.words]
    source, target = (
        split(code).tokenize(side) for code, side in zip(translator.languages, (text.source, text.target), strict=True)
    )
    return word_links(source, target, weights, scored, shift)


def word_links(
    source: Sequence[Sequence[str]],
    target: Sequence[Sequence[str]],
    weights: Sequence[Tensor],
    scored: Sequence[Scored],
    shift: int,
) -> list[Links]:
    """Turn weights over tokens into links between words.

    A sentence whose tokens do not spell its words, as when lowering the case changed a length, gets no link.

    Args:
        source: words of each source sentence.
        target: words of each target sentence.
        weights: of each sentence, (target tokens, source tokens), the end symbols included.
        scored: whose tokens they are.
        shift: how to read them, see :func:`attnlab.evaluation.alignment.from_weights`.
    """
    found: list[Links] = []
    for source_words, target_words, looked, sentence in zip(source, target, weights, scored, strict=True):
        start, end = runs(source_words, sentence.source[:-1]), runs(target_words, sentence.tokens[:-1])
        known = start is not None and end is not None
        found.append(from_weights(looked, start or [], end or [], shift=shift) if known else set())
    return found


def _gold(text: ParallelText) -> list[Gold]:
    assert text.alignments is not None
    return [Gold(set(links), set(links)) for links in text.alignments]


def earlier(
    run: Path, label: str, settings: Mapping[str, Any], sources: Mapping[str, Sequence[str] | None]
) -> dict[str, dict[str, Any]]:
    """Return the tests that ``evaluations/LABEL.json`` holds already, which a new evaluation adds to.

    Args:
        run: the folder of the (first) run.
        label: of the evaluation.
        settings: how it is made.
        sources: of each test set to come, its files, or None if it is the corpus' own.

    Raises:
        UserError: the file is damaged, or what it holds was made in another way or of other sentences.
    """
    path = run / "evaluations" / f"{label}.json"
    if not path.is_file():
        return {}
    told = read_evaluation(path)
    for name, value in settings.items():
        if told.get(name, value) != value:
            before, now = (", ".join(map(str, v)) or "none" if isinstance(v, list) else v for v in (told[name], value))
            raise UserError(f"{path} was made with other settings ({name}: {before}, and now {now}): choose another --label")
    for name, files in sources.items():
        if name in told["tests"] and told["tests"][name].get("files") != files:
            raise UserError(f"{path} holds a test {name!r} of other sentences: choose another --label")
    tests: dict[str, dict[str, Any]] = told["tests"]
    return tests


def read_evaluation(path: Path) -> dict[str, Any]:
    """Return what :func:`save` wrote.

    Raises:
        UserError: the file is damaged.
    """
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if all({"from", "to", "bleu"} <= {*bucket} for test in told["tests"].values() for bucket in test["by_length"]):
            return told
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    raise UserError(f"{path} is damaged: remove it, and run attnlab evaluate again")


def save(run: Path, label: str, measures: Mapping[str, Any], hypotheses: Mapping[str, Sequence[str]]) -> Path:
    """Write ``evaluations/LABEL.json`` in a run's folder and the hypotheses beside it; returns the path of the former.

    Raises:
        UserError: the folder cannot be written to.
    """
    folder = run / "evaluations"
    path = folder / f"{label}.json"
    try:
        folder.mkdir(exist_ok=True)
        for name, lines in hypotheses.items():
            (folder / f"{label}.{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        path.write_text(json.dumps(measures, indent=1, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {error.filename}: {error.strerror}") from error
    return path
