"""Copying: the mixture against a loop, words that the vocabulary lacks, and a model that learns to copy names."""

from pathlib import Path

import pytest
import torch

from attnlab.errors import UserError
from commands import TINY, Cli, cli
from composing import END, PADDING, VOCABULARY, copy_ids, model, sentences

__all__ = ["cli"]

POINTER = "head=pointer_generator"


def test_pointer_generator_is_its_equations() -> None:
    made = model(POINTER)
    source, lengths = torch.tensor([[5, 9, 6, 9, 10, 3], [7, 10, 3, 0, 0, 0]]), torch.tensor([6, 3])
    words = copy_ids(source)
    assert words.tolist() == [[5, 11, 6, 11, 12, 3], [7, 11, 3, 0, 0, 0]]
    target = torch.tensor([[2, 5, 1], [2, 7, 8]])
    memory, state = made.encode(source, lengths, words)
    decoded = made.decode(target, memory, state)
    distribution = made.scores(decoded, memory).softmax(-1)
    assert distribution.shape == (2, 3, VOCABULARY + 6)
    torch.testing.assert_close(distribution.sum(-1), torch.ones(2, 3).double())

    w, b = made.head.switch.weight[0], made.head.switch.bias
    for i in range(2):
        for t in range(3):
            logits = made.head.projection.weight @ decoded.readouts[i, t] + made.head.projection.bias
            vocabulary = torch.exp(logits) / torch.exp(logits).sum()
            heard = torch.cat([decoded.contexts[i, t], decoded.states[i, t], decoded.embeddings[i, t]])
            generate = 1 / (1 + torch.exp(-(w @ heard + b)))
            expected = [generate * vocabulary[k] if k < VOCABULARY else 0 * generate for k in range(VOCABULARY + 6)]
            before_end = range(int(lengths[i]) - 1)
            looked = sum(decoded.weights[i, t, j] for j in before_end)
            for j in before_end:
                word = int(words[i, j])
                expected[word] = expected[word] + (1 - generate) * decoded.weights[i, t, j] / looked
            torch.testing.assert_close(distribution[i, t], torch.stack(expected).squeeze(), rtol=0, atol=1e-10)
    assert (distribution[1, :, 12] == 0).all()  # the other sentence's second unknown word


def test_a_word_that_is_hardly_looked_at_is_hardly_copied() -> None:
    made = model(POINTER)
    with torch.no_grad():
        made.head.switch.bias.zero_()
        made.head.switch.weight.zero_()
    source, lengths = torch.tensor([[5, 9, 3]]), torch.tensor([3])
    memory, state = made.encode(source, lengths, copy_ids(source))
    decoded = made.decode(torch.tensor([[2, 5]]), memory, state)
    weights = torch.tensor([0.99999, 0.00001, 0.0], dtype=torch.float64).expand_as(decoded.weights)
    distribution = made.scores(decoded._replace(weights=weights), memory).softmax(-1)
    torch.testing.assert_close(distribution[0, :, VOCABULARY], torch.full((2,), 5e-6).double(), rtol=1e-6, atol=0)


def test_the_end_symbol_is_never_copied() -> None:
    """With a switch that only copies, it has no probability, however much the attention looks at it; neither is there a NaN."""
    made = model(POINTER)
    with torch.no_grad():
        made.head.switch.bias.fill_(-200.0)
    source, lengths = torch.tensor([[5, 9, 3], [3, 0, 0]]), torch.tensor([3, 1])
    memory, state = made.encode(source, lengths, copy_ids(source))
    decoded = made.decode(torch.tensor([[2, 5], [2, 5]]), memory, state)
    distribution = made.scores(decoded, memory).softmax(-1)
    assert (distribution[0, :, END] < 1e-12).all()
    torch.testing.assert_close(distribution[0][:, [5, VOCABULARY]].sum(-1), torch.ones(2).double())
    closed = decoded._replace(weights=torch.zeros_like(decoded.weights).index_fill(2, torch.tensor([2]), 1.0))
    assert (made.scores(closed, memory).softmax(-1)[0, :, END] < 1e-6).all()
    generated = (decoded.readouts @ made.head.projection.weight.T + made.head.projection.bias).softmax(-1)
    torch.testing.assert_close(distribution[1, :, :VOCABULARY], generated[1])  # there is nothing to copy
    torch.nn.functional.cross_entropy(made.scores(closed, memory)[0], torch.tensor([5, VOCABULARY])).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in made.parameters())


@pytest.mark.parametrize("gap", [60.0, 87.0, 90.0, 98.0, 110.0])
def test_an_attention_that_is_sure_of_the_end_has_a_finite_gradient(gap: float) -> None:
    made = model(POINTER).float()
    memory, state = made.encode(torch.tensor([[5, 9, 3]]), torch.tensor([3]), copy_ids(torch.tensor([[5, 9, 3]])))
    decoded = made.decode(torch.tensor([[2, 5]]), memory, state)
    logits = torch.tensor([0.0, -3.0, gap], requires_grad=True)
    scores = made.scores(decoded._replace(weights=logits.softmax(0).expand_as(decoded.weights)), memory)
    torch.nn.functional.cross_entropy(scores[0], torch.tensor([5, VOCABULARY])).backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("beside", [1e-2, 1e-8, 1e-12])
def test_what_is_copied_is_so_however_little_the_attention_leaves_beside_the_end(beside: float) -> None:
    made = model(POINTER).float()
    with torch.no_grad():
        made.head.switch.bias.fill_(0.0)
        made.head.switch.weight.fill_(0.0)
    source, lengths = torch.tensor([[5, 9, 3]]), torch.tensor([3])
    memory, state = made.encode(source, lengths, copy_ids(source))
    decoded = made.decode(torch.tensor([[2, 5]]), memory, state)
    weights = torch.tensor([beside / 4, 3 * beside / 4, 1.0], requires_grad=True)
    distribution = made.scores(decoded._replace(weights=weights.expand_as(decoded.weights)), memory).softmax(-1)
    generated = (decoded.readouts @ made.head.projection.weight.T + made.head.projection.bias).softmax(-1)
    expected = torch.stack([generated[0, :, 5] / 2 + 0.125, torch.full((2,), 0.375)], dim=-1)
    torch.testing.assert_close(distribution[0][:, [5, VOCABULARY]], expected)
    distribution[0, 0, 5].log().backward()
    assert weights.grad is not None
    assert weights.grad.isfinite().all()


def test_what_is_no_word_of_a_source_is_never_copied_and_takes_no_share() -> None:
    """Such as the symbol of a target language, whose copy id is that of padding."""
    made = model(POINTER)
    with torch.no_grad():
        made.head.switch.bias.zero_()
        made.head.switch.weight.zero_()
    source, lengths = torch.tensor([[7, 5, 9, 3]]), torch.tensor([4])
    words = copy_ids(source)
    words[0, 0] = PADDING
    memory, state = made.encode(source, lengths, words)
    decoded = made.decode(torch.tensor([[2, 5]]), memory, state)
    weights = torch.tensor([0.5, 0.1, 0.3, 0.1]).double().expand_as(decoded.weights)
    distribution = made.scores(decoded._replace(weights=weights), memory).softmax(-1)
    generated = (decoded.readouts @ made.head.projection.weight.T + made.head.projection.bias).softmax(-1)
    expected = generated[0].new_zeros(2, VOCABULARY + 4)
    expected[:, :VOCABULARY] = generated[0] / 2
    expected[:, 5] += 0.125
    expected[:, VOCABULARY] = 0.375
    torch.testing.assert_close(distribution[0], expected)


def test_a_copied_word_is_read_back_as_an_unknown_one() -> None:
    made = model(POINTER)
    source, lengths = sentences([6, 4])
    memory, state = made.encode(source, lengths, copy_ids(source))
    copied = made.decode(torch.tensor([[2, VOCABULARY + 1], [2, VOCABULARY]]), memory, state)
    unknown = made.decode(torch.tensor([[2, 1], [2, 1]]), memory, state)
    assert torch.equal(copied.readouts, unknown.readouts)


def test_words_out_of_reach_leave_no_nan_in_gradients() -> None:
    made = model(POINTER)
    source, lengths = torch.tensor([[9, 10, 3], [7, 3, 0]]), torch.tensor([3, 2])
    memory, state = made.encode(source, lengths, copy_ids(source))
    scores = made.scores(made.decode(torch.tensor([[2, 1], [2, 7]]), memory, state), memory)
    assert torch.isneginf(scores[1, :, VOCABULARY:]).all()
    torch.nn.functional.cross_entropy(scores.flatten(0, 1), torch.tensor([VOCABULARY, VOCABULARY + 1, 7, 3])).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in made.parameters())


def test_a_sure_switch_still_learns_to_copy_in_half_precision() -> None:
    """The probability of copying is 0 in bfloat16 long before its logarithm is out of sight."""
    made = model(POINTER, dtype=torch.float32)
    with torch.no_grad():
        made.head.switch.bias.fill_(9.0)
    source, lengths = torch.tensor([[9, 10, 3]]), torch.tensor([3])
    with torch.autocast("cpu", torch.bfloat16):
        memory, state = made.encode(source, lengths, copy_ids(source))
        scores = made.scores(made.decode(torch.tensor([[2]]), memory, state), memory)
    torch.nn.functional.cross_entropy(scores.flatten(0, 1), torch.tensor([VOCABULARY])).backward()
    assert made.head.switch.bias.grad.item() > 0.9


def test_one_hot_weights_cannot_be_copied_with() -> None:
    with pytest.raises(UserError, match="a Hard normalizer gives them none"):
        model(POINTER, "attention=hard")


@pytest.mark.parametrize(
    ("attention", "names"),
    [
        (["attention=none"], "NoAttention"),
        (["attention=context_gate", "attention@attention.inner=local_p"], "LocalPredictive"),
        (["attention=monotonic", "attention/window=local_p"], "LocalPredictive and Monotonic"),
        (["attention=mocha"], "MonotonicChunkwise"),
    ],
)
def test_weights_that_are_no_distribution_cannot_be_copied_with(attention: list[str], names: str) -> None:
    with pytest.raises(UserError, match=f"which do not sum to one with {names}: choose another"):
        model(POINTER, *attention)


def test_label_smoothing_has_no_place_beside_copying(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("train", POINTER, *TINY, "objective.label_smoothing=0.1", "logger=none") == 2
    assert "label smoothing spreads probability" in capsys.readouterr().err


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("head", "search"), [("pointer_generator", "beam"), ("pointer_generator", "greedy"), ("vocabulary", "beam")]
)
def test_names_never_seen_are_translated_by_copying(cli: Cli, tmp_path: Path, head: str, search: str) -> None:
    """Names of test occur nowhere in training, where every name occurs once: only a model that copies can write them."""
    verbs = {"sleeps": "schläft", "laughs": "lacht", "reads": "liest", "sings": "singt"}
    for split, numbers in (("train", range(400)), ("val", range(400, 410)), ("test", range(410, 430))):
        pairs = [(f"{n}on {v} very well .", f"{n}on {w} sehr gut .") for n in numbers for v, w in [list(verbs.items())[n % 4]]]
        for side, language in enumerate(("en", "de")):
            (tmp_path / f"{split}.{language}").write_text("".join(pair[side] + "\n" for pair in pairs))
    chosen = ["data=text", "data.source=en", "data.target=de", "data.train=train", "data.val=val", "data.tests={test: test}"]
    small = ["model.embedding_size=24", "encoder.hidden_size=12", "decoder.hidden_size=24", "tokenizer=whitespace"]
    budget = ["vocabulary.min_frequency=2", "batches.size=20", "optimizer.lr=0.01", "trainer.max_epochs=8"]
    quiet = ["logger=none", "trainer.accelerator=cpu", "trainer.enable_progress_bar=false"]
    assert cli("train", *chosen, *small, *budget, *quiet, f"head={head}", f"search={search}") == 0
    (written,) = tmp_path.glob("runs/train/*/seed=1/hypotheses/test.txt")
    references = (tmp_path / "test.de").read_text().splitlines()
    right = sum(line == reference for line, reference in zip(written.read_text().splitlines(), references, strict=True))
    assert right >= 18 if head == "pointer_generator" else right == 0
