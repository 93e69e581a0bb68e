"""Properties of every composition of encoder, attention and decoder that conf/ allows."""

import pickle
import re
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.attention.noise import NOISE
from attnlab.attention.scores import Additive, General
from attnlab.encoders import EncoderOutput
from attnlab.errors import UserError
from attnlab.layers.frontend import SourceFrontend, TokenFrontend
from attnlab.trees import select
from composing import (
    ENCODER_SIZE,
    PADDING,
    SMALL,
    UNATTENDED,
    VOCABULARY,
    assembled,
    composed,
    compositions,
    copy_ids,
    model,
    possible,
    sentences,
    singles,
)
from conftest import options

PARTS = ["source_frontend", "target_frontend", "encoder", "head"]
NO_GRADIENT = [
    # the softmax cancels the query
    ({"attention=linear"}, r"attention\.score\.query_weight"),
    # nobody asks, so what prepares the query is idle
    ({"attention=uniform", "decoder=transformer"}, r"\.attention_residual\.norm"),
    ({"attention=linear", "decoder=transformer"}, r"\.attention_residual\.norm"),
    # the initial state is the backward encoder's, and there is no attention to see the forward one
    ({"attention=none", "decoder=bahdanau_paper"}, r"encoder\.network\.\w+_l0$"),
    # an answer is one token: what was written before is not read, unless attention or head do
    ({"decoder=entity"}, r"^target_frontend"),
    *(
        ({"decoder=answer", f"{group}={name}"}, r"^target_frontend")
        for group in ("attention", "encoder", "head")
        for name in options(group)
        if not name.startswith("context_gate") and name not in ("pointer_generator", "tutorial")
    ),
    # of the same question every step, so that no past query tells anything
    ({"attention=intra_decoder", "decoder=answer"}, r"\.past_score\."),
    # the state of the last element is the first of those that read backwards
    ({"attention=none", "decoder=answer"}, r"encoder\.network\.weight_hh_l0_reverse"),
]
"""Parameters that learn nothing in some combination, which is what that is there to show."""


UNSHARED = ("local_p", "monotonic", "mocha", "hard", "sigmoid", "sink", "differential")
"""Attentions whose weights do not sum to one, or are on one position alone."""

REFUSED = [
    ({"attention=none"}, {"decoder=conditional", "decoder=transformer", "head=pointer_generator"}),
    ({"head=pointer_generator"}, {f"attention={name}" for name in UNSHARED}),
    (
        {"decoder=bahdanau_paper"},
        {f"encoder={name}" for name in ("convolutional", "dual_stage", "embeddings", "history", "transformer")},
    ),
]
"""What does not go together: each of one set with each of the other. Everything else must."""


def refused(chosen: set[str]) -> bool:
    if "attention=none" not in chosen and chosen & {f"decoder={name}" for name in UNATTENDED}:
        return True  # the others are with the usual attention, which these have no place for
    return any(one & chosen and other & chosen for one, other in REFUSED)


def test_compositions_are_many() -> None:
    assert len(compositions()) > 300


@pytest.mark.few(20)
@pytest.mark.parametrize("overrides", compositions(), ids=",".join)
def test_properties(overrides: tuple[str, str]) -> None:
    """Padding and company change nothing, stepping equals the parallel path, states reorder, everything learns.

    What does not go together says so in one line.
    """
    if refused(set(overrides)):
        with pytest.raises(UserError) as refusal:
            model(*overrides)
        assert "\n" not in str(refusal.value)
        return
    made = model(*overrides)
    source, lengths = sentences([6, 2, 4])
    words = copy_ids(source)
    target = possible(made, torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0], [2, 9, 9, 4, 10]]), lengths)
    memory, state = made.encode(source, lengths, words)
    together = made.decode(target, memory, state)
    scores = made.scores(together, memory)

    for row, length in enumerate(lengths.tolist()):
        one = slice(row, row + 1)
        alone_memory, alone_state = made.encode(source[one, :length], lengths[one], words[one, :length])
        alone = made.decode(target[one], alone_memory, alone_state)
        alone_scores = made.scores(alone, alone_memory)[0]
        torch.testing.assert_close(scores[row, :, : alone_scores.shape[1]], alone_scores, rtol=0, atol=1e-12)
        assert torch.isneginf(scores[row, :, alone_scores.shape[1] :]).all()
        torch.testing.assert_close(together.readouts[row], alone.readouts[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(together.weights[row, :, :length], alone.weights[0], rtol=0, atol=1e-12)
        assert (together.weights[row, :, length:] == 0).all()
    if not made.decoder.attention.context_size:
        assert (together.weights == 0).all()
    else:
        total = together.weights.sum(-1)
        if made.decoder.attention.shares:
            assert (together.weights >= 0).all()
            assert (total <= 1 + 1e-9).all()
        if made.decoder.attention.sums_to_one:
            torch.testing.assert_close(total, torch.ones(3, 5).double())

    order = torch.tensor([2, 0, 1])
    stepped, memory, position = state, select(memory, order), order
    stepped = select(stepped, order)
    for t in range(target.shape[1]):
        log_probabilities, weights, stepped = made.step(target[position, t], memory, stepped)
        expected = torch.log_softmax(scores[position, t], -1)
        torch.testing.assert_close(log_probabilities.double(), expected, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(weights, together.weights[position, t], rtol=0, atol=1e-12)
        if t == 2:  # reorder in the middle, as a beam does
            back = torch.tensor([1, 2, 0])
            stepped, memory, position = select(stepped, back), select(memory, back), position[back]

    made.train()
    for module in made.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0  # of the weights of self-attention, and between recurrent layers
    optimizer = torch.optim.SGD(made.parameters(), lr=0.02)
    losses = []
    silent = [pattern for combination, pattern in NO_GRADIENT if combination <= set(overrides)]
    for _ in range(2):
        NOISE.seed(0)  # the same in a normalizer that draws some
        memory, state = made.encode(source, lengths, words)
        decoded = made.decode(target[:, :-1], memory, state)
        labels = target[:, 1:].flatten()
        positions = labels.nonzero()[:, 0]
        loss = torch.nn.functional.cross_entropy(made.scores(decoded, memory, positions), labels[positions])
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        for name, parameter in made.named_parameters():
            learns = parameter.grad is not None and bool(parameter.grad.abs().max() > 1e-12)
            assert learns is not any(re.search(pattern, name) for pattern in silent), name
        optimizer.step()
    assert losses[1] < losses[0]


@pytest.mark.few(15)
@pytest.mark.parametrize("overrides", singles(), ids=",".join)
def test_mixed_precision(overrides: tuple[str, ...]) -> None:
    """Under bfloat16 autocast every part trains, without a clash of types and without NaN."""
    made = model(*overrides, dtype=torch.float32).train()
    source, lengths = sentences([6, 2, 4])
    target = possible(made, torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0], [2, 9, 9, 4, 10]]), lengths)
    with torch.autocast("cpu", torch.bfloat16):
        memory, state = made.encode(source, lengths, copy_ids(source))
        scores = made.scores(made.decode(target[:, :-1], memory, state), memory)
        torch.nn.functional.cross_entropy(scores.float().flatten(0, 1), target[:, 1:].flatten(), ignore_index=0).backward()
    unread = () if made.decoder.reads_targets else {*made.target_frontend.parameters()}
    for name, parameter in made.named_parameters():
        assert parameter in unread or (parameter.grad is not None and parameter.grad.isfinite().all()), name


@pytest.mark.few(10)
@pytest.mark.parametrize("attention", options("attention"))
def test_variants_share_all_weights_that_they_can(attention: str) -> None:
    additive, other = model("attention=additive"), model(f"attention={attention}")
    for part in PARTS:
        for (name, ours), theirs in zip(
            getattr(additive, part).named_parameters(), getattr(other, part).parameters(), strict=True
        ):
            assert torch.equal(ours, theirs), f"{part}.{name}"
    for name in ("recurrence", "initial_state"):
        ours, theirs = getattr(additive.decoder, name).state_dict(), getattr(other.decoder, name).state_dict()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize(
    ("wrapper", "bare"),
    [
        ("context_gate", "additive"),
        ("intra_decoder", "general"),
        ("coverage", "additive"),
        ("location_sensitive", "additive"),
        ("local_p", "general"),
        ("differential", "general"),
    ],
)
def test_a_variant_adds_to_what_it_is_compared_with_and_redraws_nothing(wrapper: str, bare: str) -> None:
    around = {name.replace(".inner", ""): value for name, value in model(f"attention={wrapper}").named_parameters()}
    for name, value in model(f"attention={bare}").decoder.attention.named_parameters(prefix="decoder.attention"):
        assert torch.equal(around[name], value), name


def test_a_part_inside_is_no_copy_of_one_around() -> None:
    nested = model("attention=intra_decoder", "attention@attention.inner=intra_decoder").decoder.attention
    pairs = zip(nested.past_score.parameters(), nested.inner.past_score.parameters(), strict=True)
    assert not any(torch.equal(outer, inner) for outer, inner in pairs)


def test_what_normalises_over_a_batch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Normalised(Additive):
        def __init__(self, query_size: int, memory_size: int, **settings: Any) -> None:
            super().__init__(query_size, memory_size, **settings)
            self.norm = torch.nn.BatchNorm1d(query_size)

        def forward(self, query: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
            return super().forward(self.norm(query.transpose(1, 2)).transpose(1, 2), keys)

    monkeypatch.setattr("attnlab.attention.scores.Additive", Normalised)
    with pytest.raises(UserError, match=r"decoder.attention.score.norm normalises over a batch"):
        model("decoder=luong", "attention=additive")


@pytest.mark.few(2)
@pytest.mark.parametrize("decoder", ["luong", "bahdanau", "gnmt", "plain"])
def test_a_decoder_that_is_told_nothing_of_the_source_is_refused(decoder: str) -> None:
    blind = [f"decoder={decoder}", "attention=none", "decoder/initial_state=zeros"]
    with pytest.raises(UserError, match="told nothing of the source"):
        model(*blind, *(["decoder.summary=start"] if decoder == "plain" else []))
    model(*blind[:2])
    model(blind[0], blind[2], "attention=none" if decoder == "plain" else "attention=dot")


def test_seed_alone_decides_the_weights() -> None:
    torch.manual_seed(3)
    first = model(seed=0)
    torch.manual_seed(4)
    again, other = model(seed=0), model(seed=1)
    pairs = list(zip(first.parameters(), again.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert all(a.numel() == 0 or not torch.equal(a, c) for a, _, c in pairs)


@pytest.mark.parametrize(
    "overrides",
    [
        ("decoder=luong_feeding", "attention=dot"),
        ("decoder=luong", "attention=coverage"),
        ("decoder=luong", "attention=intra_decoder"),
        ("decoder=transformer", "attention=multihead"),
        ("decoder=gnmt", "head=pointer_generator"),
        ("decoder=bahdanau", "head=pointing"),
    ],
    ids=",".join,
)
def test_full_forcing_is_the_parallel_path_and_free_running_feeds_its_own_best_token(overrides: tuple[str, ...]) -> None:
    made = model(*overrides)
    source, lengths = sentences([6, 2, 4])
    target = possible(made, torch.tensor([[2, 5, 6, 7], [2, 8, 4, 5], [2, 9, 9, 4]]), lengths)
    memory, state = made.encode(source, lengths, copy_ids(source))

    forced = made.decode_scheduled(target, memory, state, torch.ones(3, 4, dtype=torch.bool))
    torch.testing.assert_close(forced.readouts, made.decode(target, memory, state).readouts, rtol=0, atol=1e-12)

    free = made.decode_scheduled(target, memory, state, torch.zeros(3, 4, dtype=torch.bool))
    best = made.scores(free, memory).argmax(-1)
    own_inputs = torch.cat([target[:, :1], best[:, :-1]], dim=1)
    torch.testing.assert_close(free.readouts, made.decode(own_inputs, memory, state).readouts, rtol=0, atol=1e-12)


def test_a_model_feeds_itself_no_padding_as_a_search_writes_none() -> None:
    scores = torch.eye(VOCABULARY)[[PADDING, 4]] + torch.eye(VOCABULARY)[[7, 7]] / 2
    given = scores.clone()
    assert model().head.best(scores, torch.zeros(2)).tolist() == [7, 4]
    assert torch.equal(scores, given), "the scores are the caller's"


@pytest.mark.parametrize("free", [True, False])
def test_no_states_are_kept_but_the_last(free: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They grow with the steps, and all of them together with the square of these."""
    made = model("decoder=luong_feeding", "attention=intra_decoder")
    memory, state = made.encode(*sentences([6, 2]))
    alive: list[weakref.ref[Tensor]] = []
    step = type(made.decoder).step

    def watched(*arguments: Any) -> Any:
        after = step(*arguments)
        alive.append(weakref.ref(after.state.attention.keys))
        return after

    monkeypatch.setattr(type(made.decoder), "step", watched)
    target = torch.tensor([[2, 5, 6, 7, 8]]).repeat(2, 1)
    with torch.inference_mode():
        fed = torch.zeros(2, 5, dtype=torch.bool)
        kept = made.decode_scheduled(target, memory, state, fed) if free else made.decode(target, memory, state)
        assert [reference() is not None for reference in alive] == [False] * 4 + [True]
    assert kept.readouts.shape[1] == 5


def test_tied_embeddings_share_one_matrix_or_say_why_not() -> None:
    made = model("model.tied_embeddings=all", "model.embedding_size=8")
    matrix = made.head.projection.weight
    assert made.target_frontend.embedding.weight is made.source_frontend.embedding.weight is matrix
    assert made.size < model("model.embedding_size=8").size
    with pytest.raises(UserError, match="the embedding size is 6 and the hidden size of the decoder 8"):
        model("model.tied_embeddings=target")
    with pytest.raises(UserError, match="none, target or all"):
        model("model.tied_embeddings=both")


def test_the_embeddings_of_both_sides_are_tied_over_one_vocabulary_alone() -> None:
    frontend = TokenFrontend(VOCABULARY + 1, 0, 8)
    with pytest.raises(UserError, match="there are 12 and 11: share one vocabulary"):
        frontend.tie(torch.nn.Linear(8, VOCABULARY))


def test_a_frontend_without_embeddings_cannot_be_tied() -> None:
    class Numbers(SourceFrontend):
        def forward(self, source: torch.Tensor, /) -> torch.Tensor:
            return source

    with pytest.raises(UserError, match="a Numbers has no embeddings"):
        Numbers().tie(torch.nn.Linear(8, VOCABULARY))


def test_an_embedding_that_is_an_output_matrix_too_is_scaled_on_the_way_in() -> None:
    made = model("model.tied_embeddings=all", "model.embedding_size=8")
    tokens = torch.tensor([[5, 7]])
    expected = made.head.projection.weight[tokens] * 8**0.5
    assert torch.equal(made.source_frontend(tokens), expected)
    assert torch.equal(made.target_frontend(tokens, None), expected)
    untied = model("model.embedding_size=8")
    assert torch.equal(untied.source_frontend(tokens), untied.source_frontend.embedding.weight[tokens])
    assert (untied.source_frontend.embedding.weight[0] == 0).all()


def test_an_average_is_of_the_values_that_an_encoder_gives_beside_its_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where keys say where a token is, and values what it is."""
    made = model("decoder=luong", "attention=general")
    encode = made.encoder.forward
    given: list[EncoderOutput] = []

    def beside(vectors: Tensor, lengths: Tensor) -> EncoderOutput:
        found = encode(vectors, lengths)
        given.append(found._replace(values=torch.sin(3 * found.states)))
        return given[-1]

    monkeypatch.setattr(made.encoder, "forward", beside)
    source, lengths = sentences([5, 3])
    memory, state = made.encode(source, lengths)
    decoded = made.decode(source[:, :2], memory, state)
    states, values = given[0].states, given[0].values
    assert values is not None
    for row, length in enumerate(lengths.tolist()):
        for t in range(2):
            query = decoded.states[row, t] @ made.decoder.attention.score.projection.weight
            weights = torch.softmax(torch.stack([query @ states[row, j] for j in range(length)]), 0)
            context = sum((weights[j] * values[row, j] for j in range(length)), torch.zeros(()))
            torch.testing.assert_close(decoded.contexts[row, t], context)


class Limited(General):
    """A score that compares, with up to so many states."""

    max_length = 7


LIMITED = "score._target_=test_model.Limited"


@pytest.mark.parametrize("encoder", ["lstm", "convolutional"])
def test_dropout_of_the_memory_thins_what_the_decoder_reads_in_training_alone(
    encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = model(f"encoder={encoder}", *SMALL, "model.memory_dropout=0.5")
    read: list[EncoderOutput] = []
    start = made.decoder.start
    monkeypatch.setattr(made.decoder, "start", lambda encoded: (read.append(encoded), start(encoded))[1])
    source, lengths = sentences([4, 4, 4])
    for training in (False, True):
        made.train(training)
        made.encode(source, lengths)
    whole, thin = read
    for before, after in ((whole.states, thin.states), (whole.values, thin.values)):
        if before is None or after is None:
            assert encoder == "lstm"
            continue
        kept = after != 0
        assert 0.2 < kept.double().mean() < 0.8
        torch.testing.assert_close(after[kept], 2 * before[kept])


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("overrides", "longest"),
    [
        ([], None),
        (["attention/score=location", "attention.score.max_length=9"], 9),
        (["encoder=dual_stage", "encoder.max_length=7", "attention/score=location", "attention.score.max_length=9"], 7),
        (["attention=context_gate", "attention/score@attention.inner.score=location"], 100),
        (["attention=mocha", "attention/score@attention.normalizer.selection=location"], 100),
        (["encoder=history", f"encoder.{LIMITED}"], 7),
        (["encoder=dual_stage", "encoder.max_length=8"], 8),
        (["encoder=dual_stage", "encoder.max_length=3"], 3),
        (["attention/score=location", "attention.score.max_length=2"], 2),
        (["head=pointing", "attention/score@head.score=general", f"head.{LIMITED}", "attention=location"], 7),
        (["attention=multihead", "attention/score=general", f"attention.{LIMITED}"], 7),
    ],
)
def test_the_longest_source_is_that_of_every_part_wherever_it_sits(overrides: list[str], longest: int | None) -> None:
    assert model(*overrides).max_source_length == longest


def test_the_past_of_a_target_has_no_longest_length() -> None:
    with pytest.raises(UserError, match="a Limited score reads 7 states at most, and a target has no such limit"):
        model("attention=intra_decoder", f"attention.{LIMITED}")


@pytest.mark.exhaustive
def test_no_option_of_a_part_changes_another_part() -> None:
    for chosen in [*singles(), *compositions()[::20]]:
        whole = assembled(*chosen)
        sizes = [*SMALL, *([ENCODER_SIZE] if "hidden_size" in whole["encoder"] else [])]
        assert whole == composed(*sizes, *chosen)


@pytest.mark.few(6)
@pytest.mark.parametrize("choices", singles(), ids=",".join)
def test_a_model_can_be_pickled(choices: tuple[str, ...]) -> None:
    """As ``torch.save`` does with a whole one, and processes that are spawned."""
    made = model(*choices)
    same = pickle.loads(pickle.dumps(made)).state_dict()
    assert all(torch.equal(tensor, same[name]) for name, tensor in made.state_dict().items())
