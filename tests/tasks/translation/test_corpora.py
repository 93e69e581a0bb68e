import gzip
import hashlib
import inspect
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hydra.utils import get_object
from omegaconf import OmegaConf

from attnlab.data.pharaoh import Gold
from attnlab.errors import UserError
from attnlab.tasks.translation import Multi30k, ParallelText, Tatoeba, TextFiles
from attnlab.tasks.translation.multi30k import CHECKSUMS
from conftest import CONF, options
from sentences import write_pair


def text_files(folder: Path, **options: str) -> TextFiles:
    return TextFiles(f"{folder}/train", f"{folder}/val", {"test": f"{folder}/test"}, source="en", target="de", **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in ("train", "val", "test"):
        write_pair(tmp_path / split, f"a {split}\nb\n", f"ein {split}\nbe\n")
    return tmp_path


@pytest.mark.parametrize(
    "name", [name for name in options("data") if "defaults" not in OmegaConf.load(CONF / f"data/{name}.yaml")]
)
def test_config_holds_every_option(name: str) -> None:
    """Hydra refuses a key that its file lacks, so that data.root=DIR works without a plus sign."""
    config = OmegaConf.load(CONF / "data" / f"{name}.yaml")
    parameters = inspect.signature(get_object(config._target_)).parameters
    assert set(parameters) == set(config) - {"_target_"}
    for key, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty:
            assert OmegaConf.is_missing(config, key)
        else:
            default = parameter.default
            assert config[key] == (list(default) if isinstance(default, tuple) else default)


class TestReading:
    def test_plain_and_packed_files_of_all_splits(self, folder: Path) -> None:
        before = text_files(folder).fingerprint()
        plain = folder / "train.en"
        (folder / "train.en.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
        corpus = text_files(folder)
        assert corpus.load() == {s: ParallelText([f"a {s}", "b"], [f"ein {s}", "be"]) for s in ("train", "val", "test")}
        assert corpus.fingerprint() == before
        assert corpus.languages == ("en", "de")
        assert corpus.test_names == ("test",)

    def test_fingerprint_tells_every_byte_and_the_direction(self, folder: Path) -> None:
        before = text_files(folder).fingerprint()
        swapped = TextFiles(f"{folder}/train", f"{folder}/val", {"test": f"{folder}/test"}, source="de", target="en")
        assert swapped.fingerprint() != before
        (folder / "test.de").write_text("ein test\nbE\n")
        assert text_files(folder).fingerprint() != before

    def test_lines_end_at_line_feeds_alone(self, folder: Path) -> None:
        write_pair(folder / "val", "\ufeffone\u2028still one\x85\x0bone\r\ntwo", "eins\r\nzwei\r\n")
        assert text_files(folder).load()["val"] == ParallelText(["one\u2028still one\x85\x0bone", "two"], ["eins", "zwei"])

    def test_empty_sides_go_from_training_alone(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        for split in ("train", "test"):
            write_pair(folder / split, "a\n\nc\n", "ein\nbe\n \n")
        with caplog.at_level("INFO", "attnlab"):
            splits = text_files(folder).load()
        assert splits["train"] == ParallelText(["a"], ["ein"])
        assert splits["test"] == ParallelText(["a", "", "c"], ["ein", "be", ""])
        assert "left out 2 of 3 pairs" in caplog.text

    def test_relative_and_home_paths(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.chdir(folder)
        assert TextFiles("train", "~/val", {"test": "./test"}, source="en", target="de").load()["val"].source[0] == "a val"

    @pytest.mark.parametrize(
        ("source", "target", "message"),
        [
            (b"a\nb \xe4\n", b"a\nb\n", r"train\.en, line 2: not UTF-8 \(byte 0xe4\); convert"),
            (
                b"\xff\xfea\x00\n\x00",
                b"a\n",
                r"train\.en, line 1: not UTF-8 \(byte 0xff\); convert the file, with iconv -f UTF-16 -t",
            ),
            (b"\xef\xbb\xbfa\nb\nc \xff", b"a\nb\nc\n", r"train\.en, line 3: not UTF-8 \(byte 0xff\); convert"),
            (b"a\rb\r", b"a\nb\n", r"train\.en: its lines end in carriage returns alone; convert it with tr"),
            (b"", b"a\n", r"train\.en is empty"),
            (b"a\n", b" \n\n", r"train\.de is empty"),
            (b"a\nb\n", b"a\nb\nc\n", r"train\.en has 2 lines but .*train\.de has 3"),
        ],
    )
    def test_damaged_file(self, folder: Path, source: bytes, target: bytes, message: str) -> None:
        write_pair(folder / "train", source, target)
        with pytest.raises(UserError, match=message) as caught:
            text_files(folder).load()
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        "content", [b"not gzip", gzip.compress(b"a\nb\n" * 99, mtime=0)[:-20], b"\x1f\x8b\x08" + b"\0" * 7 + b"\xff" * 9]
    )
    def test_damaged_gzip(self, folder: Path, content: bytes) -> None:
        (folder / "train.en").unlink()
        (folder / "train.en.gz").write_bytes(content)
        with pytest.raises(UserError, match=r"cannot read .*train\.en\.gz"):
            text_files(folder).fingerprint()

    def test_missing_file(self, folder: Path) -> None:
        (folder / "val.de").unlink()
        with pytest.raises(UserError, match=r"no file .*val\.de \(or val\.de\.gz\): .*val stands for .*val\.en and .*val\.de"):
            text_files(folder).load()

    @pytest.mark.parametrize("tests", [{}, {"val": "x"}])
    def test_test_sets_have_names_of_their_own(self, tests: dict[str, str]) -> None:
        with pytest.raises(UserError, match="test"):
            TextFiles("a", "b", tests, source="en", target="de")


class TestAlignments:
    def test_lines_of_links_in_plain_and_packed_files(self, folder: Path) -> None:
        (folder / "train.align").write_text("0-0 1-1 1-0\n 0-0\r\n")
        (folder / "test.align.gz").write_bytes(gzip.compress(b"\n0-0"))
        splits = text_files(folder, alignments="align").load()
        words, without = {"words": "whitespace"}, text_files(folder).load()
        train, test = [{(0, 0), (1, 0), (1, 1)}, {(0, 0)}], [set[tuple[int, int]](), {(0, 0)}]
        assert splits == {
            "train": replace(without["train"], alignments=list(map(Gold.all_sure, train)), **words),
            "val": without["val"],
            "test": replace(without["test"], alignments=list(map(Gold.all_sure, test)), **words),
        }
        assert without["train"].alignments is None

    def test_white_space_that_is_a_word_to_aligners_stays_beside_their_links(self, folder: Path) -> None:
        write_pair(folder / "train", "\u00a0 dog\nb\u00a0\n", "Hund\n\u00a0\n")
        (folder / "train.align").write_text("1-0\n0-0\n")
        train = text_files(folder, alignments="align").load()["train"]
        assert (train.source, train.target, train.alignments) == (["\u00a0 dog"], ["Hund"], [Gold.all_sure([(1, 0)])])
        assert text_files(folder).load()["train"].source == ["dog"]

    def test_empty_pairs_go_with_their_links(self, folder: Path) -> None:
        write_pair(folder / "train", "a\n\nc\nd\n", "ein\nbe\n \nde de\n")
        (folder / "train.align").write_text("0-0\n\n\n0-1\n")
        assert text_files(folder, alignments="align").load()["train"].alignments == [
            Gold.all_sure([(0, 0)]),
            Gold.all_sure([(0, 1)]),
        ]

    def test_fingerprint_tells_the_links(self, folder: Path) -> None:
        prints = [text_files(folder).fingerprint()]
        for split, content in (("train", "0-0\n0-0\n"), ("test", "0-0\n0-0\n"), ("train", "0-0\n\n")):
            (folder / f"{split}.align").write_text(content)
            prints.append(text_files(folder, alignments="align").fingerprint())
        (folder / "test.align").rename(folder / "val.align")
        prints.append(text_files(folder, alignments="align").fingerprint())
        assert len(set(prints)) == 5
        assert text_files(folder).fingerprint() == prints[0]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("0-0\n0-0\n0-0\n", r"train\.align has 3 lines but .*train\.en has 2"),
            ("\n\n", r"train\.align is empty"),
            ("0-0\n0-0 1:1\n", r"train\.align, line 2: '1:1' is no link; links are like 0-0 or 1p2"),
            ("0-0 -1-0\n\n", r"line 1: '-1-0' is no link"),
            ("0-0 1\n\n", r"line 1: '1' is no link"),
            ("0-0\n0-٣\n", r"line 2: '0-٣' is no link"),
            (f"0-0\n0-{'9' * 5000}\n", r"line 2: '0-9+' is no link"),
            ("2-0\n\n", r"line 1: source position 2 is linked to target position 0, counted from 0, but there are 2 source"),
            ("0-0\n0-1\n", r"line 2: source position 0 is linked to target position 1, counted from 0, but there are 1 source"),
        ],
    )
    def test_damaged_file(self, folder: Path, content: str, message: str) -> None:
        (folder / "train.align").write_text(content)
        with pytest.raises(UserError, match=message) as caught:
            text_files(folder, alignments="align").load()
        assert "\n" not in str(caught.value)

    def test_missing_file(self, folder: Path) -> None:
        (folder / "val.align").write_text("0-0\n0-0\n")
        with pytest.raises(UserError, match=r"no file .*train\.align \(or train\.align\.gz\): alignments=align needs it"):
            text_files(folder, alignments="align").fingerprint()

    def test_a_folder_in_the_place_of_a_file(self, folder: Path) -> None:
        (folder / "train.align").write_text("0-0\n0-0\n")
        (folder / "val.align").mkdir()
        with pytest.raises(UserError, match=r"val\.align is a folder: alignments=align needs it"):
            text_files(folder, alignments="align").fingerprint()


class TestMulti30k:
    Server = Callable[..., Multi30k]

    @pytest.fixture
    def served(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
        published = tmp_path / "published"
        published.mkdir()
        for path in folder.glob("*.??"):
            packed = published / f"{path.name}.gz"
            packed.write_bytes(gzip.compress(path.read_bytes()))
            monkeypatch.setitem(CHECKSUMS, packed.name, hashlib.sha256(packed.read_bytes()).hexdigest())
        monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("NO_PROXY", "*")
        handler = partial(SimpleHTTPRequestHandler, directory=str(published))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield partial(Multi30k, tests=["test"], base_url=f"http://127.0.0.1:{server.server_port}")
            server.shutdown()

    def test_download_once(self, served: Server, folder: Path) -> None:
        local = Multi30k(str(folder), tests=["test"])
        corpus = served()
        assert corpus.load() == local.load()
        assert corpus.fingerprint() == local.fingerprint()
        for path in (folder / "published").iterdir():
            path.unlink()
        assert served().load() == local.load()

    def test_wrong_checksum(self, served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(CHECKSUMS, "val.de.gz", "0" * 64)
        with pytest.raises(UserError, match=r"val\.de\.gz is not the file it should be .*name it as root"):
            served().load()

    def test_no_network(self, served: Server) -> None:
        with pytest.raises(UserError, match=r"cannot download http://127\.0\.0\.1:9/train\.en\.gz .*name it as root"):
            served(base_url="http://127.0.0.1:9/").fingerprint()

    def test_no_address(self, served: Server) -> None:
        with pytest.raises(UserError, match="base_url=data/multi30k is no address of the web"):
            served(base_url="data/multi30k").fingerprint()

    def test_cache_that_cannot_be_written(self, served: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "file"))
        with pytest.raises(UserError, match=r"cannot write .*file/multi30k .*: set ATTNLAB_CACHE to another folder"):
            served().load()

    @pytest.mark.parametrize(
        ("tests", "told"),
        [([], "is empty"), (["val"], "'val' is the name of another set"), (["test", "test"], "'test' is the name of another")],
    )
    def test_test_sets_have_names_of_their_own(self, tests: list[str], told: str) -> None:
        with pytest.raises(UserError, match=told):
            Multi30k(tests=tests)

    def test_unpublished(self, served: Server) -> None:
        with pytest.raises(UserError, match=r"no file train\.xx\.gz is published at"):
            served(target="xx").load()

    def test_root_is_never_left_for_the_network(self, served: Server, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"no file .*nowhere/train\.en \(or train\.en\.gz\): root must be"):
            served(str(tmp_path / "nowhere")).load()

    def test_real_files(self, data_root: Path) -> None:
        splits = Multi30k(str(data_root / "multi30k"), target="fr").load()
        assert {name: len(split.source) for name, split in splits.items()} == {
            "train": 29000,
            "val": 1014,
            "test_2016_flickr": 1000,
            "test_2017_flickr": 1000,
        }
        for name, checksum in CHECKSUMS.items():
            assert hashlib.sha256((data_root / "multi30k" / name).read_bytes()).hexdigest() == checksum


class TestTatoeba:
    LINES = "\n".join(f"English {n // 2}.\t{'Deutsch' if n % 3 else 'DEUTSCH  '} {n // 3}.\tCC-BY" for n in range(600))

    def file(self, tmp_path: Path, content: str = LINES) -> str:
        path = tmp_path / "deu.txt"
        path.write_text(content)
        return str(path)

    def check_split(self, splits: dict[str, ParallelText]) -> None:
        for side in ("source", "target"):
            seen = [{" ".join(s.casefold().split()) for s in getattr(split, side)} for split in splits.values()]
            assert len(seen[0] | seen[1] | seen[2]) == sum(map(len, seen))

    def test_no_sentence_in_two_splits(self, tmp_path: Path) -> None:
        # 0-1, 2-3, ... share English, 0-1-2, 3-4-5, ... share German but for case and spacing: groups are of six
        corpus = Tatoeba(self.file(tmp_path), val_size=20, test_size=30)
        splits = corpus.load()
        assert {name: len(split.source) for name, split in splits.items()} == {"train": 546, "val": 24, "test": 30}
        self.check_split(splits)
        assert corpus.load() == splits

    def test_options(self, tmp_path: Path) -> None:
        path = self.file(tmp_path, self.LINES + "\nA much longer sentence.\tEin viel längerer Satz.")
        make = partial(Tatoeba, path, val_size=5, test_size=5)
        variants = [make(), make(max_pairs=50), make(seed=2), make(max_words=2), make(source="de", target="en")]
        assert len({variant.fingerprint() for variant in variants}) == 5
        loaded = [variant.load() for variant in variants]
        assert [sum(len(split.source) for split in splits.values()) for splits in loaded] == [601, 50, 601, 600, 601]
        assert loaded[0] != loaded[2]
        assert loaded[4]["test"].source == loaded[0]["test"].target

    def test_zip(self, tmp_path: Path) -> None:
        packed = tmp_path / "deu-eng.zip"
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("_about.txt", "about")
            archive.writestr("deu.txt", self.LINES)
        zipped = Tatoeba(str(packed), val_size=5, test_size=5)
        plain = Tatoeba(self.file(tmp_path), val_size=5, test_size=5)
        assert zipped.load() == plain.load()
        assert zipped.fingerprint() == plain.fingerprint()

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("a\tb\nno tab\n", "line 2: no tab; each line must be"),
            ("a\tb\n\tHallo\nHello\t\n", r"1 pairs are too few for val_size=1000"),
            ("a\tb\n", r"1 pairs are too few for val_size=1000"),
        ],
    )
    def test_damaged_file(self, tmp_path: Path, content: str, message: str) -> None:
        with pytest.raises(UserError, match=message):
            Tatoeba(self.file(tmp_path, content)).load()

    def test_missing_and_unreadable(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"no file .*manythings.*name it as path"):
            Tatoeba(str(tmp_path / "deu.txt")).load()
        (tmp_path / "deu.zip").write_bytes(b"no zip")
        with pytest.raises(UserError, match=r"cannot read .*deu\.zip"):
            Tatoeba(str(tmp_path / "deu.zip")).load()
        for name in ("max_pairs", "max_words", "val_size", "test_size"):
            with pytest.raises(UserError, match=f"^{name} must be 1 or more, not -1"):
                Tatoeba("x", **{name: -1})
        with pytest.raises(UserError, match="pairs English with another"):
            Tatoeba("x", source="de", target="fr")

    def test_real_file(self, data_root: Path) -> None:
        splits = Tatoeba(str(data_root / "tatoeba" / "deu.txt.gz"), max_pairs=50_000, max_words=12).load()
        self.check_split(splits)
        assert sum(len(split.source) for split in splits.values()) == 50_000
        assert 1000 <= len(splits["val"].source) < 1010
        assert 1000 <= len(splits["test"].source) < 1010
