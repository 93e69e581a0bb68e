"""What a trained model comes to: its scores on every test set, what it wrote, and what it looked at."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.data.links import TokenLinks
from attnlab.evaluation.bleu import bleu, chrf, tokenized_bleu
from attnlab.studies.evaluate import alignment, by_length
from attnlab.studies.translator import Translator
from attnlab.training import TranslationModule

SHOWN = 6
"""Sentences whose attention is kept for pictures, the first of the first test set that are short enough to read."""
SHOWN_LENGTH = 20
"""Tokens of the longest of these, on either side."""


def outcome(module: TranslationModule, folder: Path, *, write: bool) -> dict[str, Any]:
    """Score every test set, and write down its translations, in the order of the set.

    Args:
        module: after its test.
        folder: the run's own.
        write: also write ``hypotheses/``, ``texts/`` and ``attention.json``, and score the attention where the right alignments
            are known; for the first of several processes.

    Returns:
        The scores of each test set.
    """
    data, tests = module.data, {}
    attends = bool(module.model.decoder.attention.context_size)
    lowercase = data.target_tokenizer.lowercase
    for name, translations in module.translations.items():
        text = data.text(name)
        hypotheses = [translation.text for translation in translations]
        references = [text.target[translation.index] for translation in translations]
        lengths = [len(translation.source) - 1 for translation in translations]
        measured = module.trainer.callback_metrics
        tests[name] = {
            "sentences": len(hypotheses),
            "bleu": vars(bleu(hypotheses, references, lowercase=lowercase, language=data.languages[1])),
            "bleu_tok_lc": vars(tokenized_bleu(hypotheses, references, language=data.languages[1])),
            "chrf": vars(chrf(hypotheses, references, lowercase=lowercase)),
            **{metric: float(measured[f"{name}/{metric}"]) for metric in ("loss", "perplexity", "accuracy")},
            "by_length": by_length(hypotheses, references, lengths, lowercase, data.languages[1]),
        }
        if write:
            if text.alignments is not None and attends:
                translator = _translator(module)
                scored = translator.score(text.source, text.target)
                tests[name]["alignment"] = alignment(translator, text, scored, data.text("val"))
            sources = [text.source[translation.index] for translation in translations]
            _write_lines(folder / "hypotheses" / f"{name}.txt", hypotheses)
            _write_lines(folder / "texts" / f"{name}.source.txt", sources)
            _write_lines(folder / "texts" / f"{name}.target.txt", references)
    if write and attends and data.test_names:
        shown = attention(module, data.test_names[0])
        (folder / "attention.json").write_text(json.dumps(shown, ensure_ascii=False), encoding="utf-8")
    return tests


def summary(tests: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the scores of all test sets under flat names, such as ``test/bleu``, for loggers."""
    flat: dict[str, float] = {}
    for name, test in tests.items():
        flat |= {f"{name}/{metric}": test[metric]["value"] for metric in ("bleu", "bleu_tok_lc", "chrf")}
        if "alignment" in test:
            flat[f"{name}/aer"] = 100.0 * test["alignment"]["aer"]
    return flat


def attention(module: TranslationModule, name: str) -> list[dict[str, Any]]:
    """Return what the attention looks at while the references of some sentences are read, and the right links if known."""
    text, data = module.data.text(name), module.data
    tokens = (data.source_tokenizer.tokenize(text.source), data.target_tokenizer.tokenize(text.target))
    lengths = [sorted(map(len, pair)) for pair in zip(*tokens, strict=True)]
    short = [index for index, (low, high) in enumerate(lengths) if low > 0 and high <= SHOWN_LENGTH]
    chosen = short[:SHOWN]
    scored = _translator(module).score([text.source[i] for i in chosen], [text.target[i] for i in chosen])
    links = None
    if text.alignments is not None:
        links = TokenLinks.find(name, text, tokens, data.languages)
    shown = []
    for index, sentence in zip(chosen, scored, strict=True):
        rows, columns = sentence.weights.shape
        known = links.batch([index], rows, columns)[0].nonzero().tolist() if links else None
        shown.append(
            {
                "source": sentence.source,
                "target": sentence.tokens,
                "weights": [[round(weight, 4) for weight in row] for row in sentence.weights.tolist()],
                **({} if known is None else {"links": [[column, row] for row, column in known]}),
            }
        )
    return shown


def _translator(module: TranslationModule) -> Translator:
    data = module.data
    return Translator(
        [module.model],
        (data.source_tokenizer, data.target_tokenizer),
        (data.source_vocabulary, data.target_vocabulary),
        module.search,
        batch_size=data.eval_batch_size,
    )


def _write_lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
