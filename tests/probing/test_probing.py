"""Probes of small models in float64 against plain loops, and their properties for every attention of conf/."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau
from torch import Tensor

from attnlab.attention.interventions import GivenWeights, OwnWeights, PermutedWeights, UniformWeights
from attnlab.config import build
from attnlab.data.batches import Batch
from attnlab.data.symbols import PAD, RESERVED
from attnlab.errors import UserError
from attnlab.model import Seq2Seq
from attnlab.probing.attribution import add_correlations, attribute_by_gradient, correlate, leave_one_out
from attnlab.probing.figures import Tally
from attnlab.probing.forcing import collect_weights, draw_examples, label_log_probabilities, with_hypotheses
from attnlab.probing.probe import ProbeOptions, _probe_batch, check_attention, check_donor, probe
from attnlab.probing.weights import add_ablations, add_interventions, force_with
from attnlab.runs.assembly import build_model, build_task
from attnlab.search import GreedySearch
from attnlab.tasks.predictor import force
from commands import OF_ANY_TASK
from composing import PADDING, copy_ids, model, possible, sentences, settled
from conftest import options
from parts import softmax

ATTENTIONS = [name for name in options("attention") if name != "none"]
SOURCES, TARGETS = [5, 3, 4], [[2, 5, 6, 7, 3], [2, 8, 3, 0, 0], [2, 4, 9, 3, 0]]


def batch_for(made: Seq2Seq) -> Batch:
    source, lengths = sentences(SOURCES)
    target = possible(made, torch.tensor(TARGETS), lengths)
    known = copy_ids(source) if made.needs_copy_ids else None
    own_lengths = (target != PADDING).sum(1)
    return Batch(source, lengths, target, own_lengths, target[:, 1:], torch.arange(3), copy_ids=known)


class OneBatch:
    """Examples that are one batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def __getitem__(self, indices: list[int]) -> Batch:
        return self.batch


def composed_model(*overrides: str, **settings: Any) -> Seq2Seq:
    try:
        return model(*overrides, **settings)
    except UserError as error:
        pytest.skip(str(error))


def loops(made: Seq2Seq, batch: Batch, given: list[list[list[float]]]) -> list[list[Tensor]]:
    """Output distributions of a Luong decoder without input feeding, of each example and target token, with given weights."""
    memory, state = made.encode(batch.source, batch.source_lengths)
    decoded = made.decode(batch.target[:, :-1], memory, state)
    combine, output = made.decoder.combine.weight, made.head.projection
    found = []
    for row, length in enumerate(SOURCES):
        found.append([])
        for t in range(sum(label != PADDING for label in batch.labels[row].tolist())):
            context = sum(given[row][t][j] * memory.decoder.values[row, j] for j in range(length))
            readout = torch.tanh(combine @ torch.cat([context, decoded.states[row, t]]))
            found[-1].append(softmax(output.weight @ readout + output.bias).detach())
    return found


def test_other_weights_in_plain_loops() -> None:
    made = model("decoder=luong", "attention=general")
    batch, tally = batch_for(made), Tally()
    torch.manual_seed(5)
    swapped = torch.rand(3, 1, 4, 5, dtype=torch.float64)
    with torch.no_grad():
        add_interventions(tally, made, batch, [11, 12], [swapped])
        own = force(made, batch).weights.tolist()
    ways = {"own": [own], "uniform": [[[[1 / n] * 5 for _ in row] for row, n in zip(own, SOURCES, strict=True)]]}
    ways["swapped"] = [swapped[:, 0].tolist()]
    ways["permuted"] = []
    for seed in (11, 12):
        noise = torch.rand(3, 1, 4, 5, generator=torch.Generator().manual_seed(seed))[:, 0].tolist()
        orders = [[sorted(range(n), key=row.__getitem__) for row in rows] for rows, n in zip(noise, SOURCES, strict=True)]
        rows = zip(own, orders, strict=True)
        ways["permuted"].append([[[w[k] for k in o] for w, o in zip(a, b, strict=True)] for a, b in rows])
    with torch.no_grad():
        base = loops(made, batch, own)
        for name, weights in ways.items():
            loss = right = moved = count = 0.0
            for found in (loops(made, batch, one) for one in weights):
                for row, distributions in enumerate(found):
                    for t, p in enumerate(distributions):
                        label = int(batch.labels[row, t])
                        loss -= math.log(p[label])
                        right += int(p.argmax()) == label
                        moved += 0.5 * sum(abs(float(a) - float(b)) for a, b in zip(p, base[row][t], strict=True))
                        count += 1
            figures = tally.figures()
            assert figures[f"{name}_loss"].value == pytest.approx(loss / count, abs=1e-10)
            assert figures[f"{name}_accuracy"].value == pytest.approx(100 * right / count, abs=1e-10)
            if name != "own":
                assert figures[f"{name}_variation"].value == pytest.approx(moved / count, abs=1e-10)
    assert "own_variation" not in tally.figures()
    assert tally.figures()["permuted_variation"].value > 1e-6


def test_figures_of_several_permutations_are_the_means_of_those_of_each() -> None:
    made = model("decoder=luong", "attention=general")
    with torch.no_grad():
        for parameter in made.parameters():
            parameter *= 5  # so that the likeliest token depends on the weights
        batch, seeds = batch_for(made), range(6)
        likeliest = force(made, batch).log_probabilities.argmax(-1)
    batch.labels[batch.labels != PAD] = likeliest
    tallies = [Tally() for _ in range(7)]
    for tally, own in zip(tallies, [list(seeds), *([seed] for seed in seeds)], strict=True):
        add_interventions(tally, made, batch, own, None)
    for name in ("permuted_loss", "permuted_accuracy", "permuted_variation"):
        whole, *single = (tally.figures()[name].statistics for tally in tallies)
        assert len({one[:, 0].sum() for one in single}) > 1, "else this test says nothing"
        np.testing.assert_allclose(whole, np.mean(single, axis=0), rtol=1e-9)


def test_every_batch_is_permuted_in_its_own_way() -> None:
    """Else the same draw of numbers would decide the figures of all of them."""
    made = model("decoder=luong", "attention=general")
    batch, tallies = batch_for(made), [Tally(), Tally()]
    for first, tally in enumerate(tallies):
        _probe_batch(tally, made, replace(batch, indices=batch.indices + first), ProbeOptions(permutations=1), None)
    own, other = (tally.figures() for tally in tallies)
    assert own["own_loss"].value == other["own_loss"].value
    assert own["permuted_loss"].value != other["permuted_loss"].value


def test_examples_are_drawn_from_those_with_a_source() -> None:
    lengths = np.array([1, 4] * 20)
    examples: Any = SimpleNamespace(has_source=lengths > 1)
    drawn = draw_examples(examples, 15, seed=1)
    assert drawn == sorted({*drawn})
    assert (len(drawn), lengths[drawn].min()) == (15, 4), "an empty one would take the place of another"
    assert draw_examples(examples, 99, seed=1) == [*range(1, 40, 2)]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_figures_are_of_the_examples_in_their_order_by_block(one_by_one: bool) -> None:
    """Whatever batches they come in; sources of one sentence are examples too."""
    overrides = ["task=questions", "data=stories", "data.min_length=1", "data.max_length=9", "decoder=answer"]
    config = settled(*OF_ANY_TASK, *overrides, "logger=none")
    task = build_task(config)
    task.prepare()
    made = build_model(config, task).eval()
    predictor, examples = task.predictor([made], GreedySearch(), batch_size=3), task.examples("val")
    assert 2 in examples.source.lengths
    blocks = np.arange(len(examples)) // (1 if one_by_one else 4)
    vars(examples)["blocks"] = blocks
    for count in (len(examples), 9):
        found = probe(predictor, examples, ProbeOptions(examples=count, permutations=1))
        assert found.numbers == sorted(set(found.numbers))
        assert len(found.numbers) == count
        expected: dict[int, list[float]] = {}
        for number in found.numbers:
            batch = examples[[number - 1]]
            with torch.no_grad():
                (loss,) = -label_log_probabilities(force(made, batch), batch).double().numpy()
            expected.setdefault(int(blocks[number - 1]), []).append(float(loss))
        sums = [[sum(losses), len(losses)] for _, losses in sorted(expected.items())]
        np.testing.assert_allclose(found.figures["own_loss"].statistics, sums, rtol=1e-4)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", options("attention"))
def test_own_weights_have_the_loss_of_forced_decoding_to_the_bit(name: str) -> None:
    for decoder in ("luong_feeding", "transformer"):
        try:
            made = model(f"attention={name}", f"decoder={decoder}", dtype=torch.float32)
        except UserError:
            continue
        batch = batch_for(made)
        with torch.inference_mode():
            expected, weights = force(made, batch)
            found = force_with(made, batch, OwnWeights())
        assert torch.equal(found.log_probabilities, expected)
        assert torch.equal(found.weights, weights)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_every_attention_is_probed(name: str) -> None:
    made = composed_model(f"attention={name}")
    batch, tally = batch_for(made), Tally()
    given = collect_weights(made, batch, OneBatch(batch))  # type: ignore[arg-type]
    add_interventions(tally, made, batch, [1, 2], given)
    add_correlations(tally, made, batch)
    figures = tally.figures()
    assert figures["swapped_variation"].value == pytest.approx(0, abs=1e-10)
    assert figures["swapped_loss"].value == pytest.approx(figures["own_loss"].value, abs=1e-10)
    for figure in figures.values():
        assert figure.statistics.shape == (3, 2)
        assert np.isfinite(figure.statistics).all()
    assert all(0 <= figures[f"{way}_variation"].value <= 1 for way in ("permuted", "uniform"))
    assert all(-1 <= value <= 1 for key in figures if "gradient" in key and not math.isnan(value := figures[key].value))
    heads = [key for key in figures if key.startswith("without.")]
    assert len(heads) == (4 if "multihead" in name else 0)
    if name == "uniform":
        assert figures["permuted_variation"].value == figures["weights_gradient"].statistics[:, 1].sum() == 0
        assert figures["uniform_variation"].value == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize(
    "overrides", [["decoder=transformer", "attention=multihead"], ["head=pointer_generator"], ["head=pointing"]], ids=str
)
def test_other_decoders_and_heads_are_probed(overrides: list[str]) -> None:
    made = model(*overrides)
    batch, tally = batch_for(made), Tally()
    add_interventions(tally, made, batch, [1], None)
    add_correlations(tally, made, batch)
    figures = tally.figures()
    assert all(np.isfinite(figure.statistics).all() for figure in figures.values())
    assert ("weights_leave_one_out" in figures) == (not made.target_frontend.reads_source)
    assert "swapped_loss" not in figures
    assert sum(key.startswith("without.layers.") for key in figures) == (8 if overrides[0] == "decoder=transformer" else 0)


@pytest.mark.parametrize(
    ("decoder", "places"), [("luong", ["attention"]), ("transformer", ["layers.0.attention", "layers.1.attention"])]
)
def test_a_model_without_a_head_is_one_whose_values_of_that_head_are_zero(decoder: str, places: list[str]) -> None:
    """As there is no bias, a head without values gives nothing (Michel et al. 2019, section 2.3)."""
    made = model(f"decoder={decoder}", "attention=multihead")
    batch, tally = batch_for(made), Tally()

    def loss() -> list[float]:
        """Of every example."""
        with torch.no_grad():
            memory, state = made.encode(batch.source, batch.source_lengths)
            logits = made.scores(made.decode(batch.target[:, :-1], memory, state), memory)
        rows = zip(logits.log_softmax(-1), batch.labels.tolist(), strict=True)
        return [-sum(float(p[label]) for p, label in zip(row, labels, strict=True) if label) for row, labels in rows]

    with torch.no_grad():
        add_ablations(tally, made, batch, force(made, batch))
    figures, before = tally.figures(), loss()
    assert len(figures) == 4 * len(places)
    for place in places:
        values = made.decoder.get_submodule(place).projections.value_projection.weight
        for head in range(4):
            own = values.detach().clone()
            values.data.unflatten(0, (4, -1))[head] = 0
            grown = [after - one for after, one in zip(loss(), before, strict=True)]
            values.data.copy_(own)
            assert figures[f"without.{place}.{head}"].statistics[:, 0] == pytest.approx(grown, abs=1e-10)
            assert max(map(abs, grown)) > 1e-4


@pytest.mark.parametrize("overrides", [["decoder=luong_feeding"], ["head=pointer_generator"], ["encoder=transformer"]], ids=str)
def test_leaving_one_out_in_plain_loops(overrides: list[str]) -> None:
    made = model(*overrides)
    batch = batch_for(made)
    own = copy_ids(batch.source)

    def distributions(tokens: list[int], copied: list[int], target: list[int]) -> Tensor:
        with torch.no_grad():
            memory, state = made.encode(torch.tensor([tokens]), torch.tensor([len(tokens)]), torch.tensor([copied]))
            return made.scores(made.decode(torch.tensor([target]), memory, state), memory)[0].softmax(-1)

    single = Batch(
        batch.source[:1],
        batch.source_lengths[:1],
        batch.target[:1],
        batch.target_lengths[:1],
        batch.labels[:1],
        batch.indices[:1],
        copy_ids=own[:1] if made.needs_copy_ids else None,
    )
    found = leave_one_out(made, single, rows=3)
    tokens, copied, target = batch.source[0].tolist(), own[0].tolist(), batch.target[0, :-1].tolist()
    whole = distributions(tokens, copied, target)
    assert found.shape == (len(target), len(tokens) - 1)
    for j in range(len(tokens) - 1):
        without = distributions(tokens[:j] + tokens[j + 1 :], copied[:j] + copied[j + 1 :], target)
        for t in range(len(target)):
            known = [*without[t].tolist(), *[0.0] * (whole.shape[1] - without.shape[1])]
            moved = 0.5 * sum(abs(a - b) for a, b in zip(whole[t].tolist(), known, strict=True))
            assert float(found[t, j]) == pytest.approx(moved, abs=1e-10)


@pytest.mark.parametrize(
    "overrides", [["attention=additive"], ["decoder=transformer", "attention=multihead"], ["head=pointing"]], ids=str
)
def test_gradients_by_finite_differences(overrides: list[str]) -> None:
    made = model(*overrides)
    batch = batch_for(made)
    found = attribute_by_gradient(made, batch)
    vectors = made.source_frontend(batch.source).detach()

    def log_probability(row: int, t: int, j: int, change: Tensor) -> float:
        moved = vectors.clone()
        moved[row, j] += change
        handle = made.source_frontend.register_forward_hook(lambda *_: moved)
        with torch.no_grad():
            memory, state = made.encode(batch.source, batch.source_lengths)
            scores = made.scores(made.decode(batch.target[:, :-1], memory, state), memory)
        handle.remove()
        return float(scores[row, t].log_softmax(-1)[batch.labels[row, t]])

    step = 1e-5
    for row, t, j in [(0, 0, 0), (0, 3, 2), (1, 1, 1), (2, 2, 3), (2, 0, 2)]:
        product = 0.0
        for k in range(vectors.shape[2]):
            change = torch.zeros(vectors.shape[2], dtype=torch.float64)
            change[k] = step
            slope = (log_probability(row, t, j, change) - log_probability(row, t, j, -change)) / (2 * step)
            product += float(vectors[row, j, k]) * slope
        assert float(found[row, t, j]) == pytest.approx(abs(product), abs=1e-7)
    assert (found[1, 2:] == 0).all()
    assert (found[1, :, 3:] == 0).all()


def test_rank_correlations_in_plain_loops() -> None:
    draw = np.random.default_rng(0)
    one, other = draw.integers(4, size=(6, 7)).astype(float), draw.integers(5, size=(6, 7)).astype(float)
    one[2] = 1.0
    expected, count = 0.0, 0
    for a, b in zip(one, other, strict=True):
        pairs = [(np.sign(a[i] - a[j]), np.sign(b[i] - b[j])) for i in range(7) for j in range(i)]
        agree, untied = sum(x * y for x, y in pairs), [sum(abs(x) for x in side) for side in zip(*pairs, strict=True)]
        if all(untied):
            expected += agree / math.sqrt(untied[0] * untied[1])
            count += 1
    assert correlate(one, other) == (pytest.approx(expected), count)
    assert count == 5


def test_correlations_are_counted_by_example() -> None:
    made = model("attention=additive")
    batch, tally = batch_for(made), Tally()
    add_correlations(tally, made, batch)
    weights, gradient = force(made, batch).weights, attribute_by_gradient(made, batch)
    for row, (length, target_len) in enumerate(zip(SOURCES, (4, 2, 3), strict=True)):
        rows = [(weights[row, t, : length - 1], gradient[row, t, : length - 1]) for t in range(target_len)]
        expected = [kendalltau(a.detach(), b).statistic for a, b in rows]
        found = tally.figures()["weights_gradient"].statistics[row]
        assert found.tolist() == [pytest.approx(sum(expected)), target_len]


def test_a_longer_batch_gives_an_example_the_same_figures() -> None:
    """But for permutations, which are drawn for a batch."""
    made = model("attention=multihead", "decoder=luong_feeding")
    batch = batch_for(made)
    with torch.no_grad():
        whole = force_with(made, batch, UniformWeights()).log_probabilities
        short = Batch(
            batch.source[1:2, :3],
            batch.source_lengths[1:2],
            batch.target[1:2, :3],
            batch.target_lengths[1:2],
            batch.labels[1:2, :2],
            batch.indices[1:2],
        )
        alone = force_with(made, short, UniformWeights()).log_probabilities
        permuted = [force_with(made, batch, PermutedWeights(seed)).log_probabilities for seed in (1, 1, 2)]
    torch.testing.assert_close(whole[4:6], alone)
    assert torch.equal(permuted[0], permuted[1])
    assert not torch.equal(permuted[0], permuted[2])


class OneModel:
    def __init__(self, *overrides: str) -> None:
        self.models = [model(*overrides)]


@pytest.mark.parametrize(
    ("overrides", "labels"),
    [
        (["task=questions", "data=stories", "decoder=answer"], 1),
        (["task=pointing", "data=sort"], None),
        ([], None),
        (["task=diagnostics", "data=copy"], None),
    ],
    ids=["questions", "pointing", "translation", "diagnostics"],
)
def test_own_targets_are_what_the_tasks_own_search_finds(overrides: list[str], labels: int | None) -> None:
    """A search for answers writes one token, and one that sorts visits every number once."""
    config = settled(*OF_ANY_TASK, *overrides, "logger=none")
    task = build_task(config)
    task.prepare()
    predictor = task.predictor([build_model(config, task).eval()], build(config["search"], "search"))
    batch = next(iter(predictor.batches(task.examples("test"), range(4))))
    own = with_hypotheses(predictor, batch)
    assert own is not None
    found = [each[0].tokens for each in predictor.find_hypotheses(batch)]
    given = [[token for token in row if token != PAD] for row in own.labels.tolist()]
    assert given == [tokens[:labels] for tokens in found]
    if "task=pointing" in overrides:
        visited = [[*range(RESERVED, RESERVED + length - 1)] for length in batch.source_lengths.tolist()]
        assert [sorted(tokens[:-1]) for tokens in found] == visited


def test_refusals() -> None:
    none, one, layers = OneModel("attention=none"), OneModel(), OneModel("decoder=transformer")
    with pytest.raises(UserError, match="RUN has no attention over the source"):
        check_attention(none, "RUN")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="RUN has 1 attentions over the source and OTHER 2"):
        check_donor(one, "RUN", layers, "OTHER")  # type: ignore[arg-type]
    given = GivenWeights(collect_weights(one.models[0], batch_for(one.models[0]), OneBatch(batch_for(one.models[0]))))  # type: ignore[arg-type]
    assert given.weights[0].shape == (3, 1, 4, 5)
