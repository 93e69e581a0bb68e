"""Sentences, said in both languages: clauses joined, with a capital letter and a mark at the end."""

from dataclasses import dataclass, field

from attnlab.tasks.translation.grammar.clauses import Clause
from attnlab.tasks.translation.grammar.phrases import Word, say


@dataclass(eq=False, kw_only=True)
class Sentence:
    """One clause or more, joined by and or but; or a question.

    Attributes:
        clauses: one after another.
        joints: what joins each to the one before: ("and", "und") or ("but", "aber").
        question: whether the only clause is asked.
    """

    clauses: list[Clause]
    joints: list[tuple[str, str]] = field(default_factory=list)
    question: bool = False

    def say(self, language: str) -> list[Word]:
        """Say it in "en" or "de"."""
        return self.english() if language == "en" else self.german()

    def english(self) -> list[Word]:
        """Say it in English, with a capital letter and a full stop or a question mark."""
        words = self.clauses[0].english_question() if self.question else self.clauses[0].english()
        for clause, (joint, _) in zip(self.clauses[1:], self.joints, strict=True):
            words += [Word(",", frozenset({(clause, "joint comma")})), *say(joint, (clause, "joint")), *clause.english()]
        return _finish(words, self)

    def german(self) -> list[Word]:
        """Say it in German, with a capital letter and a full stop or a question mark."""
        words = self.clauses[0].german_question() if self.question else self.clauses[0].german()
        for clause, (_, joint) in zip(self.clauses[1:], self.joints, strict=True):
            words += [Word(",", frozenset({(clause, "joint comma")})), *say(joint, (clause, "joint")), *clause.german()]
        return _finish(words, self)


def _finish(words: list[Word], sentence: Sentence) -> list[Word]:
    said: list[Word] = []
    for word in words:
        if word.form == "," and said and said[-1].form == ",":
            said[-1] = Word(",", said[-1].keys | word.keys)  # clauses that end together share one comma
        else:
            said.append(word)
    if said[-1].form == ",":
        said.pop()
    first = said[0]
    said[0] = Word(first.form[0].upper() + first.form[1:], first.keys)
    return [*said, Word("?" if sentence.question else ".", frozenset({(sentence, "end")}))]
