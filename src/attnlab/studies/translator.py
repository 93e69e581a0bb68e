"""Using a trained model: from raw text to raw text, without the corpus that it was trained on."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor
from yaml import YAMLError  # type: ignore[import-untyped, unused-ignore]

import attnlab
from attnlab.attention import collect_head_weights
from attnlab.data.batching import cut
from attnlab.data.datamodule import ParallelDataModule
from attnlab.data.ids import Ids
from attnlab.errors import UserError
from attnlab.model import Seq2Seq
from attnlab.search import Ensemble, Search, average
from attnlab.studies.wiring import build
from attnlab.tasks.translation.copying import Copies, ExtendedIds
from attnlab.tasks.translation.tokenizers import Tokenizer
from attnlab.tasks.translation.vocabulary import BOS, EOS, PAD, SPECIAL, UNK, Vocabulary
from attnlab.training.outputs import Translation, read_out

FORMAT = 1
"""Raised whenever ``text.json`` changes its meaning."""

TOKENS = 128
"""A batch of n sentences holds at most n times as many source tokens, padding included: a line of thousands, such as a text
without line ends, stands alone and does not make all others as long as itself."""


def save_text(data: ParallelDataModule, folder: Path) -> None:
    """Write ``text.json``, all that stands between raw text and ids: languages, vocabularies, what the tokenizers learned."""
    content = {
        "format": FORMAT,
        "version": attnlab.__version__,
        "languages": list(data.languages),
        "vocabularies": [data.source_vocabulary.tokens, data.target_vocabulary.tokens],
        "tokenizers": [data.source_tokenizer.state(), data.target_tokenizer.state()],
    }
    (folder / "text.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class Scored:
    """A given translation, as a model sees it.

    Attributes:
        tokens: of the translation, ending with the end symbol.
        log_probabilities: log p(y_t | y_<t, x) of each, in nats.
        right: for each token, whether it is the most probable one.
        unknown: target tokens that the vocabulary lacks.
        weights: attention weights (len(tokens), source_len), the source's end symbol included.
        source: source tokens, ending with the end symbol.
        heads: where asked for, the weights of each head by name, such as "layers.0.attention, head 1".
    """

    tokens: list[str]
    log_probabilities: list[float]
    right: list[bool]
    unknown: int
    weights: Tensor
    source: list[str]
    heads: dict[str, Tensor] = field(default_factory=dict)

    @property
    def log_probability(self) -> float:
        """Of the whole translation, the end symbol included."""
        return sum(self.log_probabilities)


class Translator:
    """One or several trained models, and what turns text into their ids and back.

    Args:
        models: of the same vocabularies; several are searched as an ensemble.
        tokenizers: of source and target.
        vocabularies: of source and target.
        search: finds translations.
        batch_size: sentences in a batch, fewer if they are very long.
        replace_unknown: write the source word that was looked at most for an unknown one, unless told otherwise.

    Attributes:
        languages: codes of source and target.
    """

    def __init__(
        self,
        models: Sequence[Seq2Seq],
        tokenizers: tuple[Tokenizer, Tokenizer],
        vocabularies: tuple[Vocabulary, Vocabulary],
        search: Search,
        *,
        batch_size: int = 64,
        replace_unknown: bool = False,
    ) -> None:
        self.models = [model.eval() for model in models]
        self.model = self.models[0] if len(models) == 1 else Ensemble(self.models)
        self.tokenizers = tokenizers
        self.vocabularies = vocabularies
        self.languages = (tokenizers[0].language, tokenizers[1].language)
        self.search = search
        self.batch_size = batch_size
        self.replace_unknown = replace_unknown
        self.device = next(self.models[0].parameters()).device

    def translate(self, sentences: Sequence[str], *, replace_unknown: bool | None = None) -> list[Translation]:
        """Translate; the best hypothesis of each sentence, in the order of the sentences.

        Args:
            sentences: raw text. Nothing but white space is translated as nothing.
            replace_unknown: write the source word that was looked at most for an unknown one; None is the translator's own
                setting.
        """
        return [hypotheses[0] for hypotheses in self.n_best(sentences, replace_unknown=replace_unknown)]

    def n_best(self, sentences: Sequence[str], *, replace_unknown: bool | None = None) -> list[list[Translation]]:
        """Return all hypotheses that the search keeps, best first; see :meth:`translate`.

        Raises:
            UserError: a sentence that is longer than the model can read.
        """
        replace = self.replace_unknown if replace_unknown is None else replace_unknown
        tokens = self.tokenizers[0].tokenize(sentences)
        self._check_lengths(tokens)
        done: list[list[Translation]] = [[Translation(i, "", [], [], torch.zeros(0, 0), 0.0, 0.0)] for i in range(len(tokens))]
        for rows, source, lengths, copies in self._batches(tokens):
            copy_ids = copies.source if copies else None
            found = self.search(self.model, source, lengths, bos=BOS, eos=EOS, copy_ids=copy_ids)
            for place, (row, hypotheses) in enumerate(zip(rows, found, strict=True)):
                done[row] = [
                    read_out(
                        hypothesis,
                        index=row,
                        source=[*tokens[row], self.vocabularies[0].tokens[EOS]],
                        vocabulary=self.vocabularies[1],
                        tokenizer=self.tokenizers[1],
                        beyond=copies.words[place] if copies else (),
                        replace_unknown=replace,
                    )
                    for hypothesis in hypotheses
                ] or done[row]
        return done

    @torch.inference_mode()
    def score(self, sentences: Sequence[str], translations: Sequence[str], *, heads: bool = False) -> list[Scored]:
        """Score given translations by forced decoding, in the order of the sentences.

        Args:
            sentences: raw source text.
            translations: raw target text, as many.
            heads: return the weights of every head of every layer too.

        Raises:
            UserError: not as many, a source sentence of nothing but white space or too long for the model, or the heads of an
                ensemble.
        """
        if len(sentences) != len(translations):
            raise UserError(f"{len(sentences)} sentences cannot be scored with {len(translations)} translations: one for each")
        if heads and len(self.models) > 1:
            raise UserError("heads are those of one model, not of an ensemble")
        tokens, targets = self.tokenizers[0].tokenize(sentences), self.tokenizers[1].tokenize(translations)
        self._check_lengths(tokens)
        empty = next((number for number, sentence in enumerate(tokens, 1) if not sentence), None)
        if empty is not None:
            raise UserError(f"sentence {empty} is empty: it cannot be scored")
        vocabulary = self.vocabularies[1]
        done: dict[int, Scored] = {}
        for rows, source, lengths, copies in self._batches(tokens, targets):
            chosen = [targets[row] for row in rows]
            ids = Ids.of([BOS, *vocabulary.encode(target), EOS] for target in chosen)
            target, _ = ids.padded(range(len(rows)))
            target = target.to(self.device)
            labels = (copies.labels if copies else target)[:, 1:]
            collecting: AbstractContextManager[dict[str, list[Tensor]]] = nullcontext({})
            with collect_head_weights(self.models[0].decoder) if heads else collecting as collected:
                copy_ids = copies.source if copies else None
                forced = [_forced(model, source, lengths, copy_ids, target) for model in self.models]
            by_head = {
                f"{name}, head {head}": weights.float().cpu()
                for name, calls in collected.items()
                for head, weights in enumerate(torch.cat(calls, dim=2).unbind(1))
            }
            log_probabilities, weights = average([p for p, _ in forced], [w for _, w in forced])
            own = log_probabilities.gather(2, labels.unsqueeze(2)).squeeze(2).tolist()
            right = (log_probabilities.argmax(dim=-1) == labels).tolist()
            unknown = ((labels == UNK).sum(dim=1)).tolist()
            weights = weights.float().cpu()
            for place, (row, words) in enumerate(zip(rows, chosen, strict=True)):
                n, length = len(words) + 1, int(lengths[place])
                done[row] = Scored(
                    [*words, vocabulary.tokens[EOS]],
                    own[place][:n],
                    right[place][:n],
                    unknown[place],
                    weights[place, :n, :length],
                    [*tokens[row], self.vocabularies[0].tokens[EOS]],
                    {name: kept[place, :n, :length] for name, kept in by_head.items()},
                )
        return [done[row] for row in range(len(tokens))]

    @property
    def max_source_length(self) -> int | None:
        """The longest source sentence that every model can read, in tokens, its end symbol included, or None."""
        return min((m.max_source_length for m in self.models if m.max_source_length is not None), default=None)

    def check_lengths(self, sentences: Sequence[str], *, place: str = "sentence", first: int = 1) -> None:
        """Refuse a sentence that is longer than the models can read.

        Args:
            sentences: raw text.
            place: what the message calls a sentence.
            first: number of the first one, for the message.

        Raises:
            UserError: there is one; the longest is named.
        """
        if self.max_source_length is not None:
            self._check_lengths(self.tokenizers[0].tokenize(sentences), place=place, first=first)

    def _check_lengths(self, tokens: Sequence[Sequence[str]], *, place: str = "sentence", first: int = 1) -> None:
        limit = self.max_source_length
        longest, number = max(((len(sentence) + 1, n) for n, sentence in enumerate(tokens, first)), default=(0, 0))
        if limit is not None and longest > limit:
            raise UserError(
                f"{place} {number} has {longest} tokens, its end symbol included, but the model reads {limit} at most"
            )

    def _batches(
        self, tokens: Sequence[Sequence[str]], targets: Sequence[Sequence[str]] | None = None
    ) -> Iterator[tuple[list[int], Tensor, Tensor, Copies | None]]:
        """Yield batches of sentences of similar length: their places, ids, lengths, and what can be copied."""
        source = Ids.of([*self.vocabularies[0].encode(sentence), EOS] for sentence in tokens)
        copies = None
        if self.models[0].copies:
            copies = ExtendedIds.find(tokens, targets or [[]] * len(tokens), self.vocabularies[1])
        order = source.lengths.argsort(kind="stable")
        order = order[source.lengths[order] > 1]  # a sentence of nothing but its end symbol has nothing to translate
        for together in cut(order, source.lengths, self.batch_size, "sentences"):
            for rows in cut(np.array(together), source.lengths, self.batch_size * TOKENS, "tokens"):
                ids, lengths = source.padded(rows)
                extended = copies.batch(rows).to(self.device) if copies else None
                yield rows, ids.to(self.device), lengths, extended


def _forced(model: Seq2Seq, source: Tensor, lengths: Tensor, copy_ids: Tensor | None, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probabilities (batch, target_len - 1, vocabulary size) and weights of the tokens after the first."""
    memory, state = model.encode(source, lengths, copy_ids)
    decoded = model.decode(target[:, :-1], memory, state)
    return torch.log_softmax(model.scores(decoded, memory).float(), dim=-1), decoded.weights


def load(
    *runs: str | Path,
    search: Search | None = None,
    checkpoint: str = "best.ckpt",
    device: str | torch.device = "cpu",
    batch_size: int = 64,
    replace_unknown: bool | None = None,
) -> Translator:
    """Open trained models.

    Args:
        runs: folders of runs; of several the models are searched as an ensemble.
        search: finds translations; None is what the first run was tested with.
        checkpoint: which one, ``best.ckpt`` or ``last.ckpt``.
        device: where the models shall be.
        batch_size: sentences in a batch, fewer if they are very long.
        replace_unknown: write the source word that was looked at most for an unknown one; None is what the first run was
            tested with.

    Raises:
        UserError: a folder that holds no finished run, a file in it that is damaged or not of this model, a run of another
            version of attnlab, or runs with other vocabularies than the first.
    """
    if not runs:
        raise UserError("name a run: the folder that attnlab train wrote, runs/NAME/VARIANT/seed=N")
    folders = [Path(run).expanduser() for run in runs]
    opened = [_open(run, checkpoint) for run in folders]
    config, text, _ = opened[0]
    for run, (_, other, _) in zip(folders, opened, strict=True):
        if (other["vocabularies"], other["tokenizers"]) != (text["vocabularies"], text["tokenizers"]):
            raise UserError(f"{run} has other vocabularies than {folders[0]}: only models of the same text make an ensemble")
    with as_told_by(folders[0]):
        makers = [build(config.tokenizer)(language) for language in text["languages"]]
        for tokenizer, state in zip(makers, text["tokenizers"], strict=True):
            tokenizer.load_state(state)
        own_search: Search = search or build(config.search)
    if replace_unknown is None:
        replace_unknown = bool(OmegaConf.select(config, "training.replace_unknown", default=False))
    source, target = (Vocabulary(tokens) for tokens in text["vocabularies"])
    return Translator(
        [model.to(device) for _, _, model in opened],
        (makers[0], makers[1]),
        (source, target),
        own_search,
        batch_size=batch_size,
        replace_unknown=replace_unknown,
    )


def read_config(run: Path) -> DictConfig:
    """Return a run's resolved config.

    Raises:
        UserError: there is none, or it is damaged.
    """
    path = run / "config.yaml"
    if not path.is_file():
        raise UserError(f"{run} holds no config.yaml: name the folder of a finished run, runs/NAME/VARIANT/seed=N")
    try:
        config = OmegaConf.load(path)
    except (OSError, ValueError, YAMLError, OmegaConfBaseException) as error:
        raise UserError(f"{path} is damaged ({_brief(error)})") from error
    if not isinstance(config, DictConfig) or not config:
        raise UserError(f"{path} is damaged: it holds no config of a run")
    return config


def read_text(run: Path) -> dict[str, Any]:
    """Return a run's ``text.json``; see :func:`save_text`.

    Raises:
        UserError: there is none, it is damaged, or a newer version of attnlab wrote it.
    """
    path = run / "text.json"
    try:
        text: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if int(text["format"]) > FORMAT:
            newer = f"attnlab {text.get('version')}, which is newer than this one, {attnlab.__version__}"
            raise UserError(f"{run} was made by {newer}")
        sides = {len(text[name]) for name in ("languages", "vocabularies", "tokenizers")}
        beginnings = {tuple(tokens[: len(SPECIAL)]) for tokens in text["vocabularies"]}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is damaged ({_brief(error)})") from error
    if sides != {2} or beginnings != {SPECIAL}:
        raise UserError(f"{path} is damaged: it does not hold the languages, vocabularies and tokenizers of two sides")
    return text


@contextmanager
def as_told_by(run: Path) -> Iterator[None]:
    """Tell in one line whatever goes wrong while parts of a run are made as its files say.

    Raises:
        UserError: for any error.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # tokenizers raises nothing more special
        raise UserError(
            f"{run} was made by another version of attnlab, or its config.yaml was edited: {_brief(error)}"
        ) from error


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"


def make_model(config: DictConfig, source_size: int, target_size: int) -> Seq2Seq:
    """Make a run's model, its sizes wired to each other and to those of the vocabularies.

    Raises:
        UserError: components that do not go together.
    """
    model: Seq2Seq = build(config.model)(
        source_size,
        target_size,
        PAD,
        UNK,
        config.seed,
        encoder=build(config.encoder),
        attention=build(config.attention),
        decoder=build(config.decoder),
        output=build(config.output),
    )
    return model


def _open(run: Path, checkpoint: str) -> tuple[DictConfig, dict[str, Any], Seq2Seq]:
    """Return a run's config, its ``text.json``, and its model."""
    config = read_config(run)
    for name in ("text.json", checkpoint):
        if not (run / name).is_file():
            raise UserError(f"{run} holds no {name}: name the folder of a finished run, runs/NAME/VARIANT/seed=N")
    text = read_text(run)
    sizes = [len(vocabulary) for vocabulary in text["vocabularies"]]
    with as_told_by(run):
        model = make_model(config, sizes[0], sizes[1])
    model.load_state_dict(_weights(run / checkpoint, model))
    return config, text, model


def _weights(path: Path, model: Seq2Seq) -> dict[str, Tensor]:
    """Return the model's part of a checkpoint, having compared it with the model."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        state: dict[str, Tensor] = {
            name.removeprefix("model."): value for name, value in content["state_dict"].items() if name.startswith("model.")
        }
        found = {name: value.shape for name, value in state.items()}
    except (
        OSError,
        EOFError,
        RuntimeError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        UnpicklingError,
    ) as error:
        raise UserError(f"{path} is damaged, or no checkpoint of attnlab ({_brief(error)})") from error
    expected = {name: value.shape for name, value in model.state_dict().items()}
    if expected != found:
        differing = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        raise UserError(f"{path} belongs to another model than {path.parent}/config.yaml describes: {differing[0]} differs")
    return state
