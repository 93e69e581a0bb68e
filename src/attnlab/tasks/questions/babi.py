"""bAbI: twenty tasks, each of which asks for one kind of reasoning (Weston et al. 2015)."""

import hashlib
import random
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from typing_extensions import override

from attnlab.data.contents import hash_content
from attnlab.data.download import fetch
from attnlab.data.files import decode_lines, expand_home, find_file, has_file, read_bytes, read_unpacked
from attnlab.errors import UserError
from attnlab.hints import Range
from attnlab.seeding import derive_seed
from attnlab.tasks.questions.recognition import recognize_task
from attnlab.tasks.questions.stories import TASKS, Question, Stories, read_stories

URL = "https://dl.fbaipublicfiles.com/parlai/babi/"
ARCHIVE = "babi.tar.gz"
CHECKSUMS = {ARCHIVE: "f7f0bee187efca0d81c3daac1b162cda4eb7f9505dee5ad6846eabbed3dbf92e"}
"""SHA-256 of the archive, which holds the publisher's folders of 1,000 and of 10,000 questions a task."""
FOLDERS = {"1k": "en", "10k": "en-10k"}
COUNTS = {"1k": 1_000, "10k": 10_000}
"""Questions of each task in training."""
NUMBERS = range(1, TASKS + 1)
REMEDY = "unpack bAbI's archive elsewhere and name as root its folder with qa1_single-supporting-fact_train.txt and the others"


class Babi(Stories):
    """bAbI from a local folder, or downloaded once.

    The folder holds two files a task, ``qa1_…_train.txt`` and ``qa1_…_test.txt``, or one of all tasks for each split,
    ``en-1k.train.txt`` and ``en-1k.test.txt`` (plain or ``.gz``), in which a task is told by its wording.

    Args:
        root: the folder; None downloads the archive into the user's cache folder.
        tasks: numbers of tasks; none are all.
        questions: of each task in training.
        val_share: share of the stories of each task that is held out of training for validation.
        seed: of the stories that are held out; not the run's.
        base_url: where the archive is downloaded from.

    Raises:
        UserError: a task that there is not; from reading, a file that is missing, damaged or cannot be downloaded, or as many
            questions as the other collection has.
    """

    def __init__(
        self,
        root: str | None = None,
        *,
        tasks: Sequence[int] = (),
        questions: Literal["1k", "10k"] = "10k",
        val_share: Annotated[float, Range(above=0, below=1)] = 0.1,
        seed: int = 1,
        base_url: str = URL,
    ) -> None:
        if wrong := [task for task in tasks if task not in NUMBERS]:
            raise UserError(f"bAbI's tasks have the numbers 1 to {TASKS}: there is no task {wrong[0]}")
        self.root = expand_home(root) if root else None
        self.tasks = tuple(sorted(set(tasks) or NUMBERS))
        self.questions = questions
        self.val_share = val_share
        self.seed = seed
        self.base_url = base_url

    @override
    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr(("babi", self.tasks, self.questions, self.val_share, self.seed)).encode())
        for path in self._paths():
            digest.update(hash_content(path))
        return digest.hexdigest()

    @override
    def load(self) -> dict[str, list[Question]]:
        train, test = self._stories("train"), self._stories("test")
        found: dict[str, list[Question]] = {"train": [], "val": [], "test": []}
        for task in self.tasks:
            stories = train.get(task, [])
            if len(stories) < 2 or task not in test:
                place = self.root or f"{self.base_url}{ARCHIVE}"
                lacks = "no story for the test" if task not in test else f"{len(stories)} for training, where two are needed"
                raise UserError(f"{place} has of task {task} {lacks}: leave it out of tasks")
            self._check_count(task, sum(map(len, stories)))
            held_out = min(len(stories) - 1, max(1, round(self.val_share * len(stories))))
            random.Random(derive_seed(self.seed, f"babi, task {task}")).shuffle(stories)
            for split, part in (("val", stories[:held_out]), ("train", stories[held_out:]), ("test", test[task])):
                found[split] += [question._replace(task=task) for story in part for question in story]
        return found

    def _check_count(self, task: int, count: int) -> None:
        """Refuse a folder of the other collection: what a run says of its data would not be so."""
        other = next((name for name, number in COUNTS.items() if number == count), self.questions)
        if other != self.questions:
            raise UserError(f"{self.root} has {count:,} questions of task {task} for training: set questions={other}")

    def _stories(self, split: str) -> dict[int, list[list[Question]]]:
        """Return the stories of every task that is asked for."""
        found: dict[int, list[list[Question]]] = {}
        for task, lines, place in self._texts(split):
            for story in read_stories(lines, place):
                of = task or recognize_task(story)
                if not of:
                    asked = " ".join(story[0].words)
                    raise UserError(
                        f"{place}: '{asked}?' is worded as no task of bAbI: use the files of one task each (qa1_...)"
                    )
                if of in self.tasks:
                    found.setdefault(of, []).append(story)
        return found

    def _texts(self, split: str) -> Iterator[tuple[int | None, list[str], object]]:
        """Yield the task, or None where a file holds all of them, the lines and the place of each file of a split."""
        if self.root is None:
            yield from self._pack_stories(split)
            return
        for path in self._paths():
            name = path.name.removesuffix(".gz")
            number = _task_of(name)
            if name.endswith(f"{split}.txt"):
                yield number, decode_lines(read_bytes(path), path), path

    def _paths(self) -> list[Path]:
        """Return the files of both splits."""
        if self.root is None:
            return [fetch(ARCHIVE, self.base_url, CHECKSUMS, folder="babi", remedy=REMEDY)]
        own = [path for pattern in ("qa*_train.txt*", "qa*_test.txt*") for path in sorted(self.root.glob(pattern))]
        named = {path.name.removesuffix(".gz"): path for path in reversed(own)}  # of two copies the one that is not packed
        single = sorted(path for name, path in named.items() if _task_of(name) in self.tasks)
        if single:
            return single
        remedy = "root must be the folder with bAbI's files, such as qa1_single-supporting-fact_train.txt"
        if other := [name for name in FOLDERS if has_file(self.root / f"en-{name}.train.txt")]:
            remedy = f"the folder has those of questions={other[0]}"
        return [find_file(self.root / f"en-{self.questions}.{split}.txt", remedy) for split in ("train", "test")]

    def _pack_stories(self, split: str) -> Iterator[tuple[int, list[str], object]]:
        (path,) = self._paths()
        wanted = re.compile(rf"[^/]+/{FOLDERS[self.questions]}/(qa\d+_.*_{split}\.txt)")
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    match = wanted.fullmatch(member.name)
                    number = _task_of(match[1]) if match else None
                    stream = archive.extractfile(member) if number in self.tasks else None
                    if stream is not None:
                        yield number or 0, decode_lines(read_unpacked(stream, path), path), f"{path}, {member.name}"
        except (OSError, EOFError, tarfile.TarError) as error:
            raise UserError(f"cannot read {path}: {error}") from error


def _task_of(name: str) -> int | None:
    match = re.fullmatch(r"qa(\d+)_.*(?:train|test)\.txt", name)
    return int(match[1]) if match else None
