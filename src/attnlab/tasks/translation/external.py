"""Metrics of another package, measured by its own command in an environment of its own, as learned metrics are."""

import logging
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from attnlab.data.contents import hash_content
from attnlab.errors import UserError, nearest, printable
from attnlab.evaluation.evidence import Evidence
from attnlab.evaluation.metric import Occasion, Ratio, Statistics
from attnlab.evaluation.metrics import case_of, signature_of

log = logging.getLogger(__name__)

Example = tuple[str, str, str]
"""Source, hypothesis and reference."""
FILES = ("source", "hypothesis", "reference")
"""What stands in braces among the arguments for the path of a file with a line for each example."""
TRIAL: Example = ("A dog sleeps.", "Ein Hund schläft.", "Ein Hund schläft.")
EVERY_LINE = r"\s*(\S.*)"
"""Matches a line unless it is empty."""


class ExternalScore(Ratio):
    """Mean of the scores that the command of another package gives to each sentence: Σ_i s(x_i, ŷ_i, y_i) / n.

    The command is given files with a line for each sentence, in which white space is one space: the source x, the hypothesis ŷ,
    and the reference y, in lower case where the model writes nothing else. It prints a score for each. What was scored is not
    scored again, so that the divisions of a test set cost nothing beside the whole.

    Args:
        program: name of the command, or its path, such as into an environment of its own.
        arguments: of the command; "{source}", "{hypothesis}" and "{reference}" stand for the paths of files, "{model}" for the
            model.
        label: what tables and charts call it.
        model: name of the model, or the path of its file; a part of the signature, with a hash of the file.
        options: further arguments, which change no score, such as a device or the size of batches.
        package: that the command is of; its version is a part of the signature.
        pattern: a regular expression of the lines that hold a score, which is its first group; None if all do.
        higher_is_better: which way is better.
        in_tests: measure it in every test, and not by ``attnlab evaluate`` alone.

    Raises:
        UserError: arguments without "{hypothesis}", or with anything else in braces; a pattern that is no regular expression or
            has no group.
    """

    digits = 4
    occasion: ClassVar[Occasion] = "evaluation"
    runs_commands: ClassVar[bool] = True

    def __init__(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        label: str,
        model: str = "",
        options: Sequence[str | int] = (),
        package: str = "",
        pattern: str | None = None,
        higher_is_better: bool = True,
        in_tests: bool = False,
    ) -> None:
        self.program = os.path.expanduser(program)
        self.arguments = list(arguments)
        self.label = label
        self.model = os.path.expanduser(model)
        self.options = list(map(str, options))
        self.package = package
        self.higher_is_better = higher_is_better
        self.in_tests = in_tests
        try:
            self.pattern = re.compile(pattern or EVERY_LINE)
        except re.error as error:
            raise UserError(f"pattern {pattern!r} is no regular expression: {error}") from error
        if not self.pattern.groups:
            raise UserError(f"pattern {pattern!r} has no group in parentheses, which is the score")
        places = re.findall(r"\{(\w*)\}", " ".join(self.arguments))
        if wrong := next((place for place in places if place not in (*FILES, "model")), None):
            raise UserError(f"arguments: nothing is known of {{{wrong}}}: {nearest(wrong, (*FILES, 'model'))}")
        if "hypothesis" not in places:
            raise UserError("arguments: {hypothesis} is missing, which stands for the path of the file that is scored")
        self._known: dict[Example, float] = {}

    @override
    def check(self, facts: Sequence[Mapping[str, Any]]) -> None:
        self._score([TRIAL])

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        if not evidence.predictions or evidence.sources is None:
            return None
        hypotheses = [prediction.text for prediction in evidence.predictions]
        references = [line.lower() for line in evidence.references] if evidence.facts.get("lowercase") else evidence.references
        columns = ([" ".join(line.split()) for line in lines] for lines in (evidence.sources, hypotheses, references))
        examples = list(zip(*columns, strict=True))
        new = [example for example in dict.fromkeys(examples) if example not in self._known]
        if new:
            log.info("%s: %s scores %d lines, which may take long", self.label, self.program, len(new))
            self._known |= zip(new, self._score(new), strict=True)
        return np.array([(self._known[example], 1.0) for example in examples])

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        version = self.package and f"{self.package}-{self._version() or 'unknown'}"
        told = {"case": case_of(facts.get("lowercase")), "model": self._identify_model(), "version": version}
        command = " ".join([Path(self.program).name, *self.arguments])
        return signature_of({**told, "command": command}, "case", "model", "version", "command")

    def _version(self) -> str:
        """Return the package's version in the environment of the command; empty where it is not found there."""
        found = shutil.which(self.program)
        folders = Path(found).resolve().parent.parent.glob("lib*/python*/site-packages") if found else ()
        known = metadata.distributions(name=self.package, path=list(map(str, folders)))
        return next((one.version for one in known), "")

    def _identify_model(self) -> str:
        path = Path(self.model)
        return f"{path.name}-{hash_content(path).hex()[:16]}" if self.model and path.is_file() else self.model

    def _score(self, examples: Sequence[Example]) -> list[float]:
        """Return the score of each example.

        Raises:
            UserError: no such command, one that fails, or one that does not print a number for each example.
        """
        found = shutil.which(self.program)
        if found is None:
            package = self.package or "its package"
            remedy = f"install {package} in an environment of its own, and set program to the path of the command there"
            raise UserError(f"there is no command {self.program!r}: {remedy}")
        with tempfile.TemporaryDirectory() as folder:
            filled = {"model": self.model}
            for name, lines in zip(FILES, zip(*examples, strict=True), strict=True):
                path = Path(folder) / f"{name}.txt"
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
                filled[name] = str(path)
            arguments = [re.sub(r"\{(\w+)\}", lambda place: filled[place[1]], argument) for argument in self.arguments]
            printed = self._run([found, *arguments, *self.options])
        scores = [one[1] for line in printed.splitlines() if (one := self.pattern.match(line)) and one[1] is not None]
        if len(scores) != len(examples):
            told = f"{self.program} printed {len(scores)} scores for {len(examples)} sentences"
            raise UserError(f"{told}; its last line is {_last_line(printed)!r}" if printed.strip() else told)
        return list(map(self._number, scores))

    def _run(self, command: Sequence[str]) -> str:
        """Return what a command prints."""
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
        except OSError as error:
            raise UserError(f"{self.program} cannot be run: {error.strerror}") from error
        if done.returncode == 0:
            return done.stdout
        told = f"{self.program} failed (status {done.returncode}): {_last_line(done.stderr) or 'it does not say why'}"
        is_elsewhere = self.model and not Path(self.model).exists()
        raise UserError(f"{told}; if it cannot download its model, set model to a path where it is" if is_elsewhere else told)

    def _number(self, score: str) -> float:
        try:
            number = float(score)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise UserError(f"{self.program} printed {score.strip()!r:.80} as a score, which is no number")
        return number


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return printable(lines[-1].strip())[:150].rstrip(".") if lines else ""
