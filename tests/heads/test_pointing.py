"""Pointing: the distribution against a loop, what it is over, and a model that learns to point at the largest number."""

from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnlab.attention.scores import Additive, Location
from attnlab.decoders import Decoder
from attnlab.errors import UserError
from attnlab.heads import PointingHead
from attnlab.layers.frontend import SourceFrontend
from attnlab.model import Seq2Seq
from attnlab.search import BeamSearch, GreedySearch
from composing import END, RESERVED, START, ElementFrontend, model, sentences
from parts import agree

POINTING = "head=pointing"


def test_pointing_is_its_equation() -> None:
    """Vinyals et al. 2015, equation 3; the end of a source is its last element."""
    made = model(POINTING, "attention=none", "model.embedding_size=8")
    source, lengths = sentences([5, 3])
    target = torch.tensor([[START, 5, 7], [START, 4, 5]])
    memory, state = made.encode(source, lengths)
    decoded = made.decode(target, memory, state)
    states = made.encoder(made.source_frontend(source), lengths).states
    w_1, w_2, v = (made.head.score.get_parameter(f"{n}.weight") for n in ("key_projection", "query_projection", "v"))

    expected = []
    for i, length in enumerate(lengths.tolist()):
        for t in range(3):
            u = [torch.exp(v[0] @ torch.tanh(w_1 @ states[i, j] + w_2 @ decoded.readouts[i, t])) for j in range(length)]
            p = [u[j] / sum(u) for j in range(length)]
            nothing = 0 * p[0]
            positions = [p[j] if j < length - 1 else nothing for j in range(5)]
            expected.append(torch.stack([nothing, nothing, nothing, p[length - 1], *positions]))
    scores = made.scores(decoded, memory)
    assert scores.shape == (2, 3, RESERVED.size + 5)
    agree(scores.softmax(-1), torch.stack(expected).view(2, 3, -1), list(made.parameters()))


def test_nothing_but_elements_and_the_end_is_possible() -> None:
    made = model(POINTING)
    source, lengths = sentences([5, 3])
    memory, state = made.encode(source, lengths)
    scores = made.scores(made.decode(torch.tensor([[START], [START]]), memory, state), memory)[:, 0]
    possible = [[row.tolist().index(score) for score in row.tolist() if score > -torch.inf] for row in scores]
    assert possible == [[END, 4, 5, 6, 7], [END, 4, 5]]


def test_a_source_of_its_end_alone_can_only_be_ended() -> None:
    made = model(POINTING)
    memory, state = made.encode(torch.tensor([[END]]), torch.tensor([1]))
    log_probabilities, _, _ = made.step(torch.tensor([START]), memory, state)
    assert log_probabilities.exp().tolist() == [[0.0, 0.0, 0.0, 1.0, 0.0]]


def test_chosen_positions_are_scored_as_all_are() -> None:
    made = model(POINTING)
    source, lengths = sentences([5, 3])
    memory, state = made.encode(source, lengths)
    decoded = made.decode(torch.tensor([[START, 5, 7], [START, 4, 5]]), memory, state)
    some, every = made.scores(decoded, memory, torch.tensor([0, 2, 4])), made.scores(decoded, memory)
    torch.testing.assert_close(some, torch.stack([every[0, 0], every[0, 2], every[1, 1]]), rtol=0, atol=1e-12)


def test_what_was_pointed_at_is_what_is_read_next() -> None:
    """Two positions that hold one token are one to the decoder; another token is another."""
    made = model(POINTING)
    memory, state = made.encode(torch.tensor([[7, 9, 7, END]]), torch.tensor([4]))
    first, second, third = (made.decode(torch.tensor([[RESERVED.size + j]]), memory, state).readouts for j in range(3))
    assert torch.equal(first, third)
    assert not torch.allclose(first, second)


def test_dropout_is_that_of_the_readouts() -> None:
    made = model(POINTING, "model.dropout=0.5", "encoder.dropout=0").train()
    memory, state = made.encode(*sentences([5]))
    decoded = made.decode(torch.tensor([[START]]), memory, state)
    first, second = made.scores(decoded, memory), made.scores(decoded, memory)
    assert not torch.allclose(first, second)
    made.dropout.p = 0.0
    assert torch.equal(made.scores(decoded, memory), made.scores(decoded, memory))


def test_a_score_that_does_not_compare_is_refused() -> None:
    with pytest.raises(UserError, match="a Location score does not look at keys, but positions to point at need one"):
        PointingHead(model().decoder, 6, RESERVED, score=Location)


def test_there_is_no_matrix_to_tie_embeddings_to() -> None:
    with pytest.raises(UserError, match="a PointingHead has no matrix"):
        model(POINTING, "model.tied_embeddings=target")


class Numbers(SourceFrontend):
    """A source of numbers: an element is a value and whether it is the end."""

    input_size = 2

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.projection = torch.nn.Linear(2, size)

    def forward(self, source: Tensor, /) -> Tensor:
        vectors: Tensor = self.projection(source)
        return vectors


def of_numbers() -> Seq2Seq:
    made = model(POINTING, "attention=none", dtype=torch.float32)
    encoder, decoder = made.encoder, made.decoder

    def same(*arguments: object) -> Decoder:
        return decoder

    return Seq2Seq(
        Numbers,
        ElementFrontend,
        RESERVED,
        1,
        encoder=lambda size: encoder,
        attention=lambda *sizes: decoder.attention,
        decoder=same,
        head=partial(PointingHead, score=Additive),
        embedding_size=6,
        dropout=0.0,
    )


def numbers(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Sources of three to five numbers, and then their end."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(4, 7, (count,), generator=generator)
    values = torch.randn(count, 6, generator=generator)
    ends = torch.arange(6) == lengths.unsqueeze(1) - 1
    real = torch.arange(6) < lengths.unsqueeze(1) - 1
    return torch.stack([values * real, ends.float()], dim=-1), lengths


def largest(source: Tensor, lengths: Tensor) -> Tensor:
    real = torch.arange(source.shape[1]) < lengths.unsqueeze(1) - 1
    return RESERVED.size + source[..., 0].masked_fill(~real, -torch.inf).argmax(dim=1)


def test_a_model_learns_to_point_at_the_largest_of_several_numbers() -> None:
    made = of_numbers().train()
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02)
    for step in range(150):
        source, lengths = numbers(64, seed=step)
        best = largest(source, lengths)
        target = torch.stack([torch.full_like(best, START), best], dim=1)
        labels = torch.stack([best, torch.full_like(best, END)], dim=1)
        memory, state = made.encode(source, lengths)
        loss = cross_entropy(made.scores(made.decode(target, memory, state), memory).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    source, lengths = numbers(200, seed=1000)
    for search in (GreedySearch(), BeamSearch(width=2)):
        found = search(made.eval(), source, lengths, bos=START, eos=END)
        expected = [[position, END] for position in largest(source, lengths).tolist()]
        right = sum(hypotheses[0].tokens == tokens for hypotheses, tokens in zip(found, expected, strict=True))
        assert right >= 180


@pytest.mark.parametrize("search", [GreedySearch(no_repeat_ngram=1), BeamSearch(width=3, no_repeat_ngram=1)])
def test_a_search_can_be_kept_from_pointing_twice(search: GreedySearch | BeamSearch) -> None:
    made = of_numbers().eval()
    source, lengths = numbers(20, seed=0)
    for hypotheses, length in zip(search(made, source, lengths, bos=START, eos=END), lengths.tolist(), strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            assert len(set(hypothesis.tokens)) == len(hypothesis.tokens)
            assert set(hypothesis.tokens) <= {END, *range(RESERVED.size, RESERVED.size + length - 1)}
