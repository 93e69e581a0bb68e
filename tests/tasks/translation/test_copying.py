"""Target vocabularies extended by the words of each source sentence."""

from functools import partial
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from attnlab.data.datamodule import ParallelDataModule
from attnlab.tasks.translation.copying import ExtendedIds
from attnlab.tasks.translation.grammar import GrammarCorpus
from attnlab.tasks.translation.tokenizers import SpacyTokenizer
from attnlab.tasks.translation.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from conftest import CONF, options


def test_extended_ids() -> None:
    vocabulary = Vocabulary.build([["der", "Hund", "."]])
    of = {token: index for index, token in enumerate(vocabulary.tokens)}
    size = len(vocabulary)
    source = [["Rex", "the", "Hund", "Rex", "."], ["</s>", "Rex"], []]
    target = [["der", "Hund", "Rex", "Bello", "the"], ["Rex", "</s>", "<unk>"], []]
    copies = ExtendedIds.find(source, target, vocabulary).batch([2, 0, 1])
    rex, the = size, size + 1
    assert copies.words == [[], ["Rex", "the"], ["</s>", "Rex"]]
    assert copies.source.tolist() == [
        [EOS, PAD, PAD, PAD, PAD, PAD],
        [rex, the, of["Hund"], rex, of["."], EOS],
        [size, size + 1, EOS, PAD, PAD, PAD],
    ]
    assert copies.labels.tolist() == [
        [BOS, EOS, PAD, PAD, PAD, PAD, PAD],
        [BOS, of["der"], of["Hund"], rex, UNK, the, EOS],
        [BOS, size + 1, size, UNK, EOS, PAD, PAD],
    ]
    assert vocabulary.decode(copies.labels[1].tolist(), extra=copies.words[1]) == ["der", "Hund", "Rex", "<unk>", "the"]
    assert vocabulary.decode(copies.labels[2].tolist(), extra=copies.words[2]) == ["Rex", "</s>", "<unk>"]
    moved = copies.to(torch.device("meta"))
    assert (moved.source.device.type, moved.labels.device.type, moved.words) == ("meta", "meta", copies.words)


@pytest.fixture
def make(tmp_path: Path) -> partial[ParallelDataModule]:
    corpus = GrammarCorpus(train_size=100, val_size=20, test_size=20, test_long_size=20, open_names=0.5)
    return partial(ParallelDataModule, corpus, seed=1, cache_dir=tmp_path / "cache")


@pytest.mark.parametrize("name", options("tokenizer"))
@pytest.mark.parametrize("shared", [False, True])
def test_tokens_come_back(name: str, shared: bool, make: partial[ParallelDataModule]) -> None:
    data = make(instantiate(OmegaConf.load(CONF / "tokenizer" / f"{name}.yaml")), shared_vocabulary=shared, min_frequency=2)
    data.prepare_data()
    data.setup()
    data.serve_copies = True
    vocabulary, known = data.target_vocabulary, set(data.target_vocabulary.tokens[4:])
    text, batch = data.text("test"), data.batch("test", range(20))
    assert batch.copies is not None
    ids, labels = batch.copies.source, batch.copies.labels
    assert (ids != UNK).all()
    assert torch.equal(ids == EOS, batch.source == EOS)
    assert torch.equal(ids == PAD, batch.source == PAD)
    assert torch.equal(labels.where(labels < len(vocabulary), UNK), batch.target)
    for row, words in enumerate(batch.copies.words):
        (source,) = data.source_tokenizer.tokenize([text.source[row]])
        (target,) = data.target_tokenizer.tokenize([text.target[row]])
        assert words == list(dict.fromkeys(token for token in source if token not in known))
        assert vocabulary.decode(ids[row].tolist(), extra=words) == source
        reachable = [token if token in known or token in source else "<unk>" for token in target]
        assert vocabulary.decode(labels[row].tolist(), extra=words) == reachable


def test_invented_names_are_copied_from_where_they_are_linked(make: partial[ParallelDataModule]) -> None:
    data = make(SpacyTokenizer, shared_vocabulary=True)
    data.prepare_data()
    data.setup()
    data.require_links()
    data.serve_copies = True
    batch = data.batch("test", range(20)).to(torch.device("cpu"))
    assert batch.copies is not None
    assert batch.links is not None
    labels = batch.copies.labels[:, 1:]
    copied = labels >= len(data.target_vocabulary)
    assert copied.sum() > 5
    assert (batch.target[:, 1:][copied] == UNK).all()
    spelled_alike = labels.unsqueeze(2) == batch.copies.source.unsqueeze(1)
    assert ((batch.links * spelled_alike).sum(-1)[copied] > 0).all()
