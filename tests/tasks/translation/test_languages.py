"""Several target languages in one model: the corpus, the ids, what the model knows, and the commands."""

import hashlib
import itertools
import json
import logging
import pickle
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

import attnlab
from attnlab.data.contents import hash_content
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, EOS, PAD, RESERVED, SPECIAL
from attnlab.errors import UserError
from attnlab.model import Seq2Seq
from attnlab.runs.assembly import build_model
from attnlab.runs.files import read_statistics
from attnlab.runs.folder import RunFolder
from attnlab.search import BeamSearch, GreedySearch, Hypothesis, NoPenalty
from attnlab.tasks.translation import Multi30k, TextFiles, Translation
from attnlab.tasks.translation.joined import JoinedPairs
from attnlab.tasks.translation.languages import LanguageToken
from attnlab.tasks.translation.links import token_spans
from attnlab.tasks.translation.targetlanguage import TargetLanguage
from attnlab.tasks.translation.tokenizers import BPETokenizer, SpacyTokenizer
from commands import Cli, cli
from composing import assembled
from sentences import prepared, translation

__all__ = ["cli"]

WAYS = get_args(LanguageToken)
TARGETS = ["de", "fr", "cs"]
SUBJECTS = [("The dog", "Der Hund", "Le chien", "Pes"), ("A woman", "Eine Frau", "Une femme", "Žena")]
SUBJECTS += [("My friend", "Mein Freund", "Mon ami", "Můj přítel"), ("The child", "Das Kind", "L'enfant", "Dítě")]
VERBS = [("sees", "sieht", "voit", "vidí"), ("draws", "zeichnet", "dessine", "kreslí"), ("has", "hat", "a", "má")]
OBJECTS = [("two cats", "zwei Katzen", "deux chats", "dvě kočky"), ("the house", "das Haus", "la maison", "dům")]
OBJECTS += [("three trees", "drei Bäume", "trois arbres", "tři stromy"), ("it", "es", "cela", "to")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sentences in four languages; "other" lacks Czech."""
    parts = itertools.product(SUBJECTS, VERBS, OBJECTS)
    lines = [[" ".join(words) + "." for words in zip(*chosen, strict=True)] for chosen in parts]
    for split, own in {"train": lines[::2], "val": lines[1::6], "test": lines[3::6], "other": lines[5::6]}.items():
        for language, side in zip(["en", *TARGETS], zip(*own, strict=True), strict=True):
            if (split, language) != ("other", "cs"):
                (tmp_path / f"{split}.{language}").write_text("\n".join(side) + "\n", encoding="utf-8")
    return tmp_path


def corpus(folder: Path, target: str | list[str] = TARGETS, **settings: Any) -> TextFiles:
    tests = {name: str(folder / name) for name in settings.pop("tests", ["test", "other"])}
    return TextFiles(str(folder / "train"), str(folder / "val"), tests, source="en", target=target, **settings)


def task(folder: Path, token: str = "source", **changes: Any) -> Translation:
    data = corpus(folder, language_token=token)
    return prepared(translation(folder, **{"data": data, "tokenizer": SpacyTokenizer, **changes}))


QUERY = "attention.query=[state,language]"


def model(made: Translation, *overrides: str) -> Seq2Seq:
    return build_model(assembled("model.dropout=0", *overrides), made).double().eval()


# the corpus


@pytest.mark.exhaustive
def test_pairs_are_the_union_over_languages_and_a_test_set_may_lack_one(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made = task(folder)
        assert made.measured_tests == ["test", "test_de", "test_fr", "test_cs", "other", "other_de", "other_fr"]
        task(folder).measured_tests  # noqa: B018  # and it is not said again
    told = f"no file {folder}/other.cs: other is measured in de, fr alone"
    assert [record.message for record in caplog.records] == [told]
    for split, languages in {"train": TARGETS, "val": TARGETS, "test": TARGETS, "other": TARGETS[:2]}.items():
        english = (folder / f"{split}.en").read_text().splitlines()
        sides = [(folder / f"{split}.{language}").read_text().splitlines() for language in languages]
        pairs, places = made.examples(split), made.divisions(split)
        assert list(pairs.sources) == english * len(languages)
        assert list(pairs.references) == [line for side in sides for line in side]
        assert list(places) == [f"{split}_{language}" for language in languages]
        for name, side in zip(places, sides, strict=True):
            assert (
                list(made.examples(name).references) == side == list(pairs.references[places[name].start : places[name].stop])
            )
        assert pairs.lengths.tolist() == [
            [len(s.split()), len(t.split())] for s, t in zip(pairs.sources, pairs.references, strict=True)
        ]
    assert made.place("test", len(english) + 2) == f"{folder}/test.en, line 3"
    with pytest.raises(UserError, match=r"no test set 'test_it': there is train, val, test, other, train_de"):
        made.examples("test_it")


def test_a_test_set_in_another_language_is_other_data(folder: Path) -> None:
    (folder / "other.fr").unlink()
    german = corpus(folder, ["de", "fr"]).fingerprint()
    (folder / "other.de").rename(folder / "other.fr")
    assert corpus(folder, ["de", "fr"]).fingerprint() != german


@pytest.mark.exhaustive
def test_one_vocabulary_has_a_symbol_of_each_language_that_no_text_can_spell(folder: Path) -> None:
    made = task(folder)
    made.choose_target("fr")
    for vocabulary in made.vocabularies:
        assert vocabulary.tokens[: RESERVED + 3] == [*SPECIAL, "<2de>", "<2fr>", "<2cs>"]
        assert vocabulary.encode(["<2de>", "<2xx>"]) == [1, 1]
    pairs = made.parse(["<2de> The dog sees it ."])
    assert (pairs.source[0] == RESERVED + 1).sum() == 1, "the symbol of the language that was chosen, and no other"
    words = {word for code in TARGETS for word in made.tokenizers[0].tokenize([(folder / f"train.{code}").read_text()])[0]}
    assert {"Hund", "chien", "Pes"} <= words & set(made.vocabularies[1].tokens)


@pytest.mark.parametrize("shared", [False, True])
def test_tokenizers_that_learn_pieces_learn_them_of_all_target_languages(folder: Path, shared: bool) -> None:
    made = task(folder, tokenizer=lambda language: BPETokenizer(language, vocab_size=300), shared=shared)
    states = [tokenizer.state() for tokenizer in made.tokenizers]
    assert states[1] == states[2] == states[3]
    assert (states[0] == states[1]) is shared
    for code in TARGETS:
        pairs = made.examples(f"test_{code}")
        assert [pairs.target_tokenizer(0).detokenize(tokens) for tokens in pairs.tokens[1]] == list(pairs.references)


REFUSED = {
    "one twice": ({"target": ["de", "de"]}, "each once"),
    "none": ({"target": []}, "each once"),
    "without effect": ({"target": "de", "language_token": "target"}, "would have no effect"),
    "odd code": ({"target": ["de", "tok.fr"]}, "'tok.fr'"),
    "name of a division": ({"tests": ["test", "test_fr"]}, "choose another name"),
    "alignments": ({"alignments": "align"}, "one target language"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case: str, folder: Path) -> None:
    settings, told = REFUSED[case]
    with pytest.raises(UserError, match=told):
        corpus(folder, **settings)


def test_training_in_a_language_that_has_no_file_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match=r"no file .*train.it"):
        translation(folder, data=corpus(folder, ["de", "it"])).prepare()
    (folder / "other.de").unlink()
    (folder / "other.fr").unlink()
    with pytest.raises(UserError, match=r"no file .*other.de"):
        translation(folder, data=corpus(folder)).prepare()


def test_one_target_language_is_what_it_was(folder: Path) -> None:
    """Data and settings of a run of one pair are hashed as before there were several languages, and its ids have no symbol."""
    made = prepared(translation(folder, data=corpus(folder, "fr"), tokenizer=SpacyTokenizer))
    digest = hashlib.sha256(b"text ('en', 'fr') ('test', 'other')")
    for split in ("train", "val", "test", "other"):
        for language in ("en", "fr"):
            digest.update(hash_content(folder / f"{split}.{language}"))
    assert made.corpus.fingerprint() == digest.hexdigest() == corpus(folder, ["fr"]).fingerprint()
    described = [SpacyTokenizer(language).describe() for language in ("en", "fr")]
    options = [("max_size", None), ("min_frequency", 1), ("shared", False)]
    decisive = (digest.hexdigest(), described, options, None)
    assert made.content == hashlib.sha256(repr(decisive).encode()).hexdigest()[:32]
    assert list(made.state()) == ["languages", "vocabularies", "tokenizers"]
    assert not any(token.startswith("<2") for vocabulary in made.vocabularies for token in vocabulary.tokens)
    assert made.divisions("val") == {}
    assert made.measured_tests == ("test", "other")
    assert made.facts["language"] == "fr"
    assert not isinstance(made.examples("val"), JoinedPairs)


def test_translations_of_one_sentence_are_drawn_together(folder: Path) -> None:
    """Of several languages, and of several pairs with one source."""
    joined, pairs = (task(folder, data=corpus(folder, target)).examples("test") for target in (TARGETS, "de"))
    assert joined.blocks.tolist() == 3 * pairs.blocks.tolist() == 3 * [*range(len(pairs))]
    for language in ("en", "de"):
        path = folder / f"test.{language}"
        first, second, *_ = path.read_text(encoding="utf-8").splitlines()
        path.write_text(f"{first}\n{second}\n{first}\n", encoding="utf-8")
    assert task(folder, data=corpus(folder, "de")).examples("test").blocks.tolist() == [0, 1, 0]


# the ids


@pytest.mark.parametrize("way", WAYS)
def test_the_symbol_stands_where_it_is_told_and_nowhere_else(way: str, folder: Path) -> None:
    made = task(folder, way)
    pairs, vocabularies = made.examples("val"), made.vocabularies
    indices = [0, len(pairs) - 1, len(pairs) // 2]
    batch = pairs[indices]
    for row, index in enumerate(indices):
        number = next(n for n, places in enumerate(made.divisions("val").values()) if index in places)
        symbol, tokenizer = RESERVED + number, made.tokenizers[1 + number]
        (english,), (other,) = (
            made.tokenizers[0].tokenize([pairs.sources[index]]),
            tokenizer.tokenize([pairs.references[index]]),
        )
        source, target = [*vocabularies[0].encode(english), EOS], vocabularies[1].encode(other)
        wanted: list[Any] = {"source": [symbol, *source], "target": source, "query": [[one, symbol] for one in source]}[way]
        length = int(batch.source_lengths[row])
        assert batch.source[row, :length].tolist() == wanted == pairs.source[index].tolist()
        assert (batch.source[row, length:] == PAD).all()
        assert batch.target[row, : len(target) + 2].tolist() == [symbol if way == "target" else BOS, *target, EOS]
        assert batch.labels[row, : len(target) + 1].tolist() == [*target, EOS]
        shown = [f"<2{TARGETS[number]}>"] if way == "source" else []
        assert pairs.source_tokens(index) == [*shown, *english, "</s>"]
        assert pairs.target_tokens(index) == [*other, "</s>"]
    assert pairs.source.lengths.tolist() == [len(pairs.source[index]) for index in range(len(pairs))]
    assert torch.equal(pickle.loads(pickle.dumps(pairs))[indices].source, batch.source), "as for processes that load batches"
    made.choose_target("cs")
    assert made.parse(["", "It."]).source.lengths.tolist() == [1, 4 if way == "source" else 3], "what is empty stays empty"


def test_ways_share_text_and_differ_in_their_settings_alone(folder: Path) -> None:
    made = [task(folder, way) for way in WAYS]
    assert len({one.data_fingerprint for one in made}) == 1
    assert len({one.content for one in made}) == 3
    assert len([*(folder / "cache" / "corpora").glob("[!.]*")]) == 1, "it is tokenized once"


@pytest.mark.parametrize("way", WAYS)
def test_copies_follow_the_source(way: str, folder: Path) -> None:
    made = task(folder, way, min_frequency=3)
    made.serve_copy_ids()
    pairs = made.examples("test")
    batch = pairs[[0, len(pairs) - 1]]
    assert batch.copy_ids is not None
    assert batch.copy_ids.shape == batch.source.shape[:2]
    size = len(made.vocabularies[1])
    assert pairs.extensions is not None
    for row, index in enumerate([0, len(pairs) - 1]):
        ids = batch.copy_ids[row, : int(batch.source_lengths[row])].tolist()
        copied = [made.vocabularies[1].tokens[one] if one < size else pairs.extensions[index][one - size] for one in ids]
        begin = int(way == "source")  # the symbol, which is no word to be copied
        assert ids[:begin] == [PAD] * begin
        assert copied[begin:] == pairs.source_tokens(index)[begin:]


def test_links_skip_the_symbol_and_an_unknown_word_is_never_replaced_by_it(folder: Path) -> None:
    assert token_spans(["My", "friend"], ["<2de>", "My", "friend"]) == [(1, 2), (2, 3)]
    assert token_spans(["<2de>", "My"], ["<2de>", "My"]) == [(0, 1), (1, 2)], "text that spells one"
    assert token_spans(["<2de>", "My"], ["<2fr>", "<2de>", "My"]) == [(1, 2), (2, 3)]
    assert token_spans(["My"], ["friend", "My"]) is None
    made = task(folder, replace_unknown=True)
    pairs, weights = made.examples("test"), torch.zeros(2, 6)
    weights[0, 0], weights[0, 2], weights[1, 0] = 0.9, 0.1, 1.0
    found = made.read(Hypothesis([1, EOS], 0.0, 0.0, weights), pairs, 0)
    assert found.tokens[0] == pairs.source_tokens(0)[2]


# the model


@pytest.mark.parametrize(
    "parts",
    [
        (),
        ("attention=multihead", "attention/score=general"),
        ("decoder=transformer", "decoder.heads=2", "attention=general"),
        ("decoder=bahdanau", "attention=coverage"),
        ("attention=intra_decoder", "attention.inner.query=[state,language]"),
    ],
)
def test_a_query_alone_knows_the_language(parts: tuple[str, ...], folder: Path) -> None:
    """The encoder and the decoder's first input are those of every language; the weights are not."""
    made = task(folder, "query")
    own = model(made, *parts, *([] if "attention=intra_decoder" in parts else [QUERY]))
    pairs, count = made.examples("test"), len(made.examples("test_de"))
    batch = pairs[[0, count, 2 * count]]
    states = []
    encode = own.encoder.forward
    own.encoder.forward = lambda *given: states.append(encode(*given)) or states[-1]  # type: ignore[func-returns-value]
    memory, state = own.encode(batch.source, batch.source_lengths)
    first = own.decode(torch.full((3, 1), BOS), memory, state)
    assert (states[0].states == states[0].states[:1]).all()
    assert (first.embeddings == first.embeddings[:1]).all()
    for one, other in itertools.combinations(range(3), 2):
        assert not torch.allclose(first.weights[one], first.weights[other])


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_source_stays_empty_in_whatever_language(way: LanguageToken) -> None:
    ids, language = Ragged.of_ids([[EOS], [RESERVED, EOS]]), TargetLanguage("de", RESERVED + 1, way)
    for marked in (language.mark_sources(ids), language.mark_copies(ids)):
        assert marked.lengths.tolist() == [len(marked[0]), len(marked[1])] == [1, 3 if way == "source" else 2]
        assert marked[0].flatten()[0] == EOS


def test_dropout_thins_the_language_of_a_query_in_training_alone(folder: Path) -> None:
    made = task(folder, "query")
    own, batch = model(made, QUERY, "model.dropout=0.5"), made.examples("test")[[0, 1]]
    torch.manual_seed(0)
    (whole, _), (thin, _) = (own.train(training).encode(batch.source, batch.source_lengths) for training in (False, True))
    kept = thin.decoder.language != 0
    assert 0.2 < kept.double().mean() < 0.8
    torch.testing.assert_close(thin.decoder.language[kept], 2 * whole.decoder.language[kept])


def test_a_query_asks_for_no_language_where_there_is_one(folder: Path) -> None:
    with pytest.raises(UserError, match="there is one language, which nothing tells: leave it out"):
        model(prepared(translation(folder, data=corpus(folder, "de"), tokenizer=SpacyTokenizer)), QUERY)


@pytest.mark.parametrize("control", ["attention=uniform", "attention/score=linear"])
def test_a_query_that_nobody_reads_tells_no_language(control: str, folder: Path) -> None:
    with pytest.raises(UserError, match="this attention does not ask with it"):
        model(task(folder, "query"), control, QUERY)
    model(task(folder, "query"), control, QUERY, "attention/window=local_p")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "parts",
    [
        (),
        ("attention=multihead", "attention/score=general"),
        ("decoder=transformer", "decoder.heads=2", "attention=general"),
        ("head=pointer_generator",),
    ],
)
def test_a_search_begins_as_training_does(way: str, parts: tuple[str, ...], folder: Path) -> None:
    """What a search says of its own hypothesis in each language, forced decoding of that hypothesis says too."""
    made = task(folder, way)
    own = model(made, *parts, QUERY)
    if own.needs_copy_ids:
        made.serve_copy_ids()
    pairs, count = made.examples("test"), len(made.examples("test_de"))
    batch = pairs[[1, count + 1, 2 * count + 1]]
    for search in (GreedySearch(max_length_offset=4), BeamSearch(width=3, length_penalty=NoPenalty(), max_length_offset=4)):
        found = search(own, batch.source, batch.source_lengths, bos=batch.target[:, 0], eos=EOS, copy_ids=batch.copy_ids)
        for row, (best, *_) in enumerate(found):
            memory, state = own.encode(
                batch.source[[row]], batch.source_lengths[[row]], None if batch.copy_ids is None else batch.copy_ids[[row]]
            )
            target = torch.tensor([[int(batch.target[row, 0]), *best.tokens[:-1]]])
            decoded = own.decode(target, memory, state)
            said = own.scores(decoded, memory).log_softmax(-1)[0, range(len(best.tokens)), best.tokens]
            assert float(said.detach().sum()) == pytest.approx(best.log_probability)
            torch.testing.assert_close(decoded.weights[0].float(), best.weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("attention", [("attention=additive",), ("attention=none", "decoder=plain")])
def test_a_language_that_nothing_would_read_is_refused(attention: tuple[str, ...], folder: Path) -> None:
    with pytest.raises(UserError, match="made of state and language"):
        model(task(folder, "query"), *attention)


def test_parts_that_ways_share_begin_from_the_same_weights(folder: Path) -> None:
    states = [model(task(folder, way), QUERY).state_dict() for way in WAYS]
    for name, tensor in states[0].items():
        assert all(torch.equal(tensor, state[name]) for state in states[1:]), name


def test_lines_of_text_need_a_language(folder: Path) -> None:
    made = task(folder)
    with pytest.raises(UserError, match="writes de, fr and cs: say which, such as --to de"):
        made.parse(["It."])
    with pytest.raises(UserError, match="no target language 'ft': there is cs, de, fr"):
        made.choose_target("ft")
    one = prepared(translation(folder, data=corpus(folder, "fr")))
    one.choose_target("fr")
    with pytest.raises(UserError, match="writes one language, fr, and no 'de': leave out --to"):
        one.choose_target("de")


# the commands


def train(cli: Cli, folder: Path, name: str, *more: str) -> Path:
    data = ["data=text", "data.source=en", "data.target=[de,fr,cs]", f"data.train={folder}/train", f"data.val={folder}/val"]
    data += [f"data.tests={{test: {folder}/test, other: {folder}/other}}", "tokenizer=spacy", "task.silver_links=true"]
    small = [
        "model.embedding_size=16",
        "encoder.hidden_size=8",
        "decoder.hidden_size=16",
        "search.width=2",
        "optimizer.lr=0.01",
    ]
    small += ["trainer=cpu", "trainer.max_epochs=1", "trainer.enable_progress_bar=false", "logger=none", "batches.size=8"]
    assert cli("train", f"name={name}", *data, *small, "callbacks.samples.heatmaps=1", *more) == 0
    (run,) = Path("runs", name).glob("*/seed=1")
    return run.resolve()


@pytest.mark.exhaustive
def test_a_run_is_measured_in_each_language_and_in_all(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(cli, folder, "source")
    tests = json.loads((run / "result.json").read_text())["tests"]
    assert list(tests) == ["test", "test_de", "test_fr", "test_cs", "other", "other_de", "other_fr"]
    rows = {name: read_statistics(RunFolder(run).statistics_file(name)) for name in tests}
    for metric in ("bleu", "chrf", "loss", "exact", "silver_aer"):
        parts = [rows[f"test_{code}"][metric] for code in TARGETS]
        np.testing.assert_array_equal(rows["test"][metric], np.concatenate(parts))
    curve = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert {"val/bleu", "val_de/bleu", "val_fr/bleu", "val_cs/bleu"} <= {name for line in curve for name in line}
    shown = json.loads((run / "attention.json").read_text())
    assert {one["source"][0] for one in shown} == {"<2de>", "<2fr>", "<2cs>"}
    for code in TARGETS:
        assert RunFolder(run).references_file(f"test_{code}").read_text() == (folder / f"test.{code}").read_text()

    capsys.readouterr()
    assert cli("evaluate", str(run), "--test", "test,val_cs", "--bootstrap", "1") == 0
    told = capsys.readouterr().out
    assert all(name in told for name in ("test_de", "test_fr", "test_cs", "val_cs"))
    assert cli("evaluate", str(run), "--to", "fr") == 2
    assert cli("evaluate", str(run), "--files", f"{folder}/test.en", f"{folder}/test.fr", "--to", "fr", "--label", "files") == 0

    outputs = {}
    for code in TARGETS:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO((folder / "test.en").read_bytes())))
        capsys.readouterr()
        assert cli("translate", str(run), "--to", code) == 0
        outputs[code] = capsys.readouterr().out.splitlines()
        translator: Any = attnlab.load(run, to=code)
        assert [found.text for found in translator.translate((folder / "test.en").read_text().splitlines())] == outputs[code]
    for arguments, message in {
        (): "writes de, fr and cs: say which",
        ("--to", "ft"): "no target language 'ft': there is cs, de, fr",
    }.items():
        kept = folder / "kept.txt"
        kept.write_text("kept")
        assert cli("translate", str(run), "--input", f"{folder}/test.en", "--output", str(kept), *arguments) == 2
        assert message in capsys.readouterr().err
        assert kept.read_text() == "kept"
    files = [f"{folder}/test.en", f"{folder}/test.de"]
    assert cli("align", str(run), "--to", "de", "--files", *files, "--output", f"{folder}/links") == 0
    links = (folder / "links").read_text().splitlines()
    assert len(links) == len((folder / "test.en").read_text().splitlines())
    assert max(int(link.split("-")[0]) for line in links for link in line.split()) < 6, "positions of words, without the symbol"
    two = ["--to", "fr", "--to", "cs"]
    assert cli("draw", "heatmaps", str(run), "--source", "My friend sees it.", *two, "--output", "weights.svg") == 0
    assert all(f">{title}</text>" in Path("weights.svg").read_text() for title in ("fr", "cs")), "a panel each"


@pytest.mark.exhaustive
def test_ways_compare_and_make_no_ensemble(cli: Cli, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [train(cli, folder, way, f"data.language_token={way}", QUERY) for way in WAYS]
    for run in runs[1:]:
        with pytest.raises(UserError, match="is told the target language in another way"):
            attnlab.load(runs[0], run)
    capsys.readouterr()
    assert cli("compare", str(runs[0]), str(runs[1]), "--test", "test_fr") == 0
    assert "BLEU" in capsys.readouterr().out
    again = train(cli, folder, "again", QUERY)
    assert attnlab.load(runs[0], again, to="fr").predict(["It."])
    assert cli("probe", str(runs[0]), "--examples", "4", "--bootstrap", "1") == 0


def test_multi30k_has_four_languages(data_root: Path) -> None:
    tests = ["test_2016_flickr", "test_2017_flickr"]
    parts = Multi30k(str(data_root / "multi30k"), target=TARGETS, tests=tests).parts
    assert list(parts["test_2016_flickr"]) == TARGETS
    assert list(parts["test_2017_flickr"]) == ["de", "fr"]
    with pytest.raises(UserError, match="no file"):
        Multi30k(str(data_root / "multi30k"), target="cs", tests=tests).fingerprint()
