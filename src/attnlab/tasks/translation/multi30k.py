"""Multi30k: 29,000 image descriptions in several languages (Elliott et al. 2016)."""

from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from attnlab.data.download import fetch
from attnlab.data.files import expand_home, find_file, has_file
from attnlab.tasks.translation.corpora import FileCorpus
from attnlab.tasks.translation.languages import LanguageToken

URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"

CHECKSUMS = {
    "test_2016_flickr.cs.gz": "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.fr.gz": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
    "train.cs.gz": "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.cs.gz": "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
}
"""SHA-256 of the publisher's files."""


class Multi30k(FileCorpus):
    """Multi30k from a local directory, or downloaded once.

    Args:
        root: directory with ``train.en``, ``train.de``, ``val.en``, ``test_2016_flickr.en`` and so on, plain or ``.gz``; None
            downloads them into the user's cache folder.
        source: en, de, fr, cs or, from a directory, any language that is there.
        target: likewise, or a list of several; a test set that one of them lacks is measured in the others.
        tests: names of test sets.
        language_token: where the target language is told, if there are several; see :class:`FileCorpus`.
        base_url: where the files are downloaded from.

    Raises:
        UserError: names that :class:`FileCorpus` refuses; from reading, a file that is missing, damaged or cannot be
            downloaded.
    """

    kind = "multi30k"

    def __init__(
        self,
        root: str | None = None,
        *,
        source: str = "en",
        target: str | Sequence[str] = "de",
        tests: Sequence[str] = ("test_2016_flickr", "test_2017_flickr"),
        language_token: LanguageToken = "source",
        base_url: str = URL,
    ) -> None:
        super().__init__(source, target, tests, language_token)
        self.root = expand_home(root) if root else None
        self.base_url = base_url

    @override
    def missing(self, split: str, language: str) -> str:
        if self.root is None:
            name = f"{split}.{language}.gz"
            return "" if name in CHECKSUMS else name
        path = self.root / f"{split}.{language}"
        return "" if has_file(path) else str(path)

    @override
    def file(self, split: str, language: str) -> Path:
        if self.root is not None:
            return find_file(
                self.root / f"{split}.{language}", "root must be the folder with Multi30k's files, such as train.en.gz"
            )
        name = f"{split}.{language}.gz"
        return fetch(
            name,
            self.base_url,
            CHECKSUMS,
            folder="multi30k",
            remedy="put train, val and the test sets (train.en.gz, train.de.gz, ...) into a folder and name it as root",
        )
