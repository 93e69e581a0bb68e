"""Beam search of trained models beside JoeyNMT's: both learn from the same corpus, and translate the first test set."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from sacrebleu import corpus_bleu

from attnlab.config import build
from attnlab.data.symbols import without_end
from attnlab.search import BeamSearch
from attnlab.tasks.predictor import Predictor
from benchmarks.decoding import NO_BFLOAT16, has_bfloat16
from benchmarks.figures import Contestant, Figure, Part, Quantity, rate
from benchmarks.loops import fit
from benchmarks.peer import JOEYNMT, compete
from benchmarks.setting import Setting

EPOCHS = 3
"""Of both models."""
THRESHOLD = 3.0
"""``search.relative_threshold`` of the pruned searches."""
PRUNED = f"`search.relative_threshold={THRESHOLD:g}`"
WAYS = {
    "attnlab": (torch.float32, None, ""),
    "attnlab, pruned": (torch.float32, THRESHOLD, f", {PRUNED}"),
    "attnlab, bfloat16": (torch.bfloat16, None, ", `--precision bfloat16`"),
    "attnlab, bfloat16, pruned": (torch.bfloat16, THRESHOLD, f", `--precision bfloat16`, {PRUNED}"),
}
"""How attnlab searches: its type, its threshold, and what the table says of them."""
LABELS = {name: f"trained, beam of 5, attnlab{way}" for name, (_, _, way) in WAYS.items()}
LABELS[JOEYNMT] = f"trained, beam of 5, {JOEYNMT}"
SPEEDS = {name: Quantity(f"trained beam, {name}", label, "sentences/s") for name, label in LABELS.items()}
BLEU = {name: Quantity(f"trained BLEU, {name}", f"{label}: BLEU", "BLEU") for name, label in LABELS.items()}
RATIOS = {name: Quantity(f"trained beam, {name} / {JOEYNMT}", f"{LABELS[name]} / {JOEYNMT}") for name in WAYS}


class OurSearch:
    """A way in which attnlab translates the first test set.

    Attributes:
        translations: of the last time, their tokens but the end symbol.
    """

    def __init__(self, setting: Setting, predictor: Predictor) -> None:
        self.setting = setting
        self.predictor = predictor
        self.examples = setting.task.examples(setting.task.test_names[0])
        self.translations: list[Sequence[str]] = []

    def __call__(self) -> float:
        """Translate, and return how many sentences a second."""
        return rate(self.translate, self.setting.synchronize)

    def translate(self) -> float:
        """Translate, and return how many sentences."""
        found: dict[int, Sequence[str]] = {}
        for batch in self.predictor.batches(self.examples):
            found |= {p.index: without_end(p.tokens) for p in self.predictor.search_batch(batch, self.examples)}
        self.translations = [found.get(index, []) for index in range(len(self.examples))]
        return len(found)


def our_searches(setting: Setting) -> dict[str, OurSearch]:
    """Train, and return every way to search."""
    module = setting.module()
    fit(module, setting, max_epochs=EPOCHS)
    module.model.to(setting.device).eval()
    models = {dtype: setting.model().eval() for dtype, *_ in WAYS.values()}
    for dtype, model in models.items():
        model.load_state_dict(module.model.state_dict())
        model.to(dtype)
    search = build(setting.config["search"], "search")
    assert isinstance(search, BeamSearch)
    size = setting.config["batches"]["eval_size"]
    return {
        name: OurSearch(
            setting, setting.task.predictor([models[dtype]], replace(search, relative_threshold=threshold), batch_size=size)
        )
        for name, (dtype, threshold, _) in WAYS.items()
    }


def measure(setting: Setting) -> Iterator[Figure]:
    """Train both, and let all searches take turns."""
    ours = our_searches(setting)
    coarse = {name for name, (dtype, *_) in WAYS.items() if dtype == torch.bfloat16}
    failures = {} if has_bfloat16(setting) else dict.fromkeys(coarse, NO_BFLOAT16)
    contestants: dict[str, Contestant] = {name: search for name, search in ours.items() if name not in failures}
    references = [" ".join(tokens) for _, tokens in zip(*ours["attnlab"].examples.tokens, strict=True)]
    rounds, peer = compete(contestants, setting, JOEYNMT, "trained", EPOCHS)
    rounds.failures.update(failures)
    translations: dict[str, list[Sequence[str]]] = {name: ours[name].translations for name in contestants}
    if peer:
        translations[JOEYNMT] = [[t for t in tokens if t != "</s>"] for tokens in peer.answer.get("tokens", [])]

    for name, quantity in SPEEDS.items():
        length = sum(map(len, translations.get(name, []))) / max(len(references), 1)
        yield rounds.figure(quantity, name, f"{EPOCHS} epochs of training; translations of {length:.1f} tokens in the mean")
        if name in RATIOS:
            yield rounds.ratio(RATIOS[name], name, JOEYNMT)
        if name in rounds.failures:
            yield Figure.missing(BLEU[name], rounds.failures[name])
        else:
            lines = [" ".join(tokens) for tokens in translations[name]]
            score = corpus_bleu(lines, [references], tokenize="none", force=True).score
            yield Figure.of(BLEU[name], [score], "of lower-cased tokens, by sacreBLEU")


PART = Part(
    [q for name in LABELS for q in (SPEEDS[name], RATIOS.get(name), BLEU[name]) if q is not None], measure, is_long=True
)
