"""Target vocabularies extended by the words of each source sentence."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from attnlab.data.symbols import BOS, EOS, PAD, UNK
from attnlab.tasks.translation import Translation
from attnlab.tasks.translation.copying import CopyIds, copy_for_unknown
from attnlab.tasks.translation.grammar import GrammarCorpus
from attnlab.tasks.translation.tokenizers import SpacyTokenizer
from attnlab.tasks.translation.vocabulary import Vocabulary
from conftest import CONF, options
from sentences import prepared, translation


def test_extended_ids() -> None:
    vocabulary = Vocabulary.build([["der", "Hund", "."]])
    of = {token: index for index, token in enumerate(vocabulary.tokens)}
    size = len(vocabulary)
    source = [["Rex", "the", "Hund", "Rex", "."], ["</s>", "Rex"], []]
    target = [["der", "Hund", "Rex", "Bello", "the"], ["Rex", "</s>", "<unk>"], []]
    copies = CopyIds.of(source, target, vocabulary)
    sources, labels = (ids.padded([2, 0, 1])[0] for ids in (copies.source, copies.labels))
    rex, the = size, size + 1
    assert copies.extensions == [["Rex", "the"], ["</s>", "Rex"], []]
    assert sources.tolist() == [
        [EOS, PAD, PAD, PAD, PAD, PAD],
        [rex, the, of["Hund"], rex, of["."], EOS],
        [size, size + 1, EOS, PAD, PAD, PAD],
    ]
    assert labels.tolist() == [
        [BOS, EOS, PAD, PAD, PAD, PAD, PAD],
        [BOS, of["der"], of["Hund"], rex, UNK, the, EOS],
        [BOS, size + 1, size, UNK, EOS, PAD, PAD],
    ]


Make = Callable[..., Translation]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    corpus = GrammarCorpus(
        train_size=100, val_size=20, test_size=20, test_long_size=20, test_deep_size=9, test_long_deep_size=9, open_names=0.5
    )
    return partial(translation, tmp_path, data=corpus)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", options("tokenizer"))
@pytest.mark.parametrize("shared", [False, True])
def test_tokens_come_back(name: str, shared: bool, make: Make) -> None:
    tokenizer = instantiate(OmegaConf.load(CONF / "tokenizer" / f"{name}.yaml"))
    task = prepared(make(tokenizer=tokenizer, shared=shared, min_frequency=2))
    task.serve_copy_ids()
    vocabulary, known = task.vocabularies[1], set(task.vocabularies[1].tokens[4:])
    pairs = task.examples("test")
    text, batch = pairs.text, pairs[range(20)]
    assert batch.copy_ids is not None
    assert pairs.extensions is not None
    ids, labels = batch.copy_ids, batch.labels
    assert (ids != UNK).all()
    assert torch.equal(ids == EOS, batch.source == EOS)
    assert torch.equal(ids == PAD, batch.source == PAD)
    assert torch.equal(labels.where(labels < len(vocabulary), UNK), batch.target[:, 1:])
    for row, words in enumerate(pairs.extensions):
        (source,) = task.tokenizers[0].tokenize([text.source[row]])
        (target,) = task.tokenizers[1].tokenize([text.target[row]])
        extended = Vocabulary([*vocabulary.tokens, *words])
        assert words == list(dict.fromkeys(token for token in source if token not in known))
        assert extended.decode(ids[row].tolist()) == source
        reachable = [token if token in known or token in source else "<unk>" for token in target]
        assert extended.decode(labels[row].tolist()) == reachable


def test_an_unknown_word_stays_where_its_row_looks_at_no_word() -> None:
    weights = torch.tensor([[0.1, 0.6, 0.3], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    found = copy_for_unknown(["<unk>"] * 3, [UNK] * 3, ["Anna", "Bob", "</s>"], weights, 2)
    assert found == ["Bob", "<unk>", "<unk>"]
    weights = torch.tensor([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])
    found = copy_for_unknown(["<unk>"] * 2, [UNK] * 2, ["<2de>", "Anna", "Bob", "</s>"], weights, 2)
    assert found == ["Anna", "Bob"], "what says the language is no word, nor is the end"


def test_invented_names_are_copied_from_where_they_are_linked(make: Make) -> None:
    task = prepared(make(tokenizer=SpacyTokenizer, shared=True))
    task.serve_links()
    task.serve_copy_ids()
    batch = task.examples("test")[range(20)].to(torch.device("cpu"))
    assert batch.copy_ids is not None
    assert batch.links is not None
    copied = batch.labels >= len(task.vocabularies[1])
    assert copied.sum() > 5
    assert (batch.target[:, 1:][copied] == UNK).all()
    spelled_alike = batch.labels.unsqueeze(2) == batch.copy_ids.unsqueeze(1)
    assert ((batch.links * spelled_alike).sum(-1)[copied] > 0).all()
