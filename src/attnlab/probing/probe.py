"""A probe: all experiments on the attention of one trained model."""

from dataclasses import dataclass

import numpy as np

from attnlab.attention import find_attentions
from attnlab.data.batches import Batch, memory_errors
from attnlab.data.examples import Examples
from attnlab.errors import UserError
from attnlab.model import Seq2Seq
from attnlab.probing.attribution import add_correlations
from attnlab.probing.figures import Figure, Tally
from attnlab.probing.forcing import collect_weights, draw_examples, with_hypotheses
from attnlab.probing.weights import add_interventions
from attnlab.seeding import derive_seed
from attnlab.tasks.predictor import REMEDY, Predictor


@dataclass(frozen=True)
class ProbeOptions:
    """What is probed, and how often.

    Attributes:
        examples: how many, drawn from those of a test set; fewer if there are no more.
        seed: of the draw and of the permutations.
        permutations: of the weights of each target token, over which is averaged.
        own_targets: make the model write what it finds itself, and not the right targets.
    """

    examples: int = 200
    seed: int = 1
    permutations: int = 10
    own_targets: bool = False


@dataclass(frozen=True)
class ProbeFindings:
    """What a probe found.

    Attributes:
        figures: by name, the examples in the order of the test set.
        numbers: of the examples in the test set, from 1.
    """

    figures: dict[str, Figure]
    numbers: list[int]


@dataclass(frozen=True)
class Donor:
    """A model whose weights another one is given.

    Attributes:
        predictor: with the model.
        examples: the same as the other's, as this one reads them.
    """

    predictor: Predictor
    examples: Examples


def check_attention(predictor: Predictor, name: str) -> None:
    """Refuse a model without attention over the source.

    Args:
        predictor: with the model.
        name: what the message calls it.

    Raises:
        UserError: it has none, or writes numbers.
    """
    if predictor.models[0].targets.numbers:
        raise UserError(f"{name} writes numbers, and a probe compares distributions of tokens: name a run of another task")
    if not find_attentions(predictor.models[0].decoder):
        raise UserError(f"{name} has no attention over the source, so that there are no weights to change")


def check_donor(predictor: Predictor, name: str, donor: Predictor, other: str) -> None:
    """Refuse a model whose weights have no place in another.

    Raises:
        UserError: not as many attentions over the source in both.
    """
    counts = [len(find_attentions(one.models[0].decoder)) for one in (predictor, donor)]
    if counts[0] != counts[1]:
        raise UserError(
            f"{name} has {counts[0]} attentions over the source and {other} {counts[1]}: swap weights between runs with as many"
        )


def probe(predictor: Predictor, examples: Examples, options: ProbeOptions, donor: Donor | None = None) -> ProbeFindings:
    """Make all experiments on the attention of a model, over some examples.

    Args:
        predictor: with one model.
        examples: of a test set.
        options: which of them, and how.
        donor: whose weights are given to the model, if any.

    Raises:
        UserError: no example with a source, no target that the model finds, or not enough memory.
    """
    tally, numbers = Tally(), []
    for batch in predictor.batches(examples, draw_examples(examples, options.examples, options.seed)):
        chosen = _search_targets(predictor, batch) if options.own_targets else batch
        if chosen is not None:
            _probe_batch(tally, predictor.models[0], chosen, options, donor)
            numbers += [index + 1 for index in chosen.indices.tolist()]
    if not numbers:
        raise UserError("there is no example with a source and a target that can be written")
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    ordered = [numbers[place] for place in order]
    blocks = None if examples.blocks is None else examples.blocks[np.array(ordered) - 1]
    return ProbeFindings(tally.figures(order, blocks), ordered)


def _search_targets(predictor: Predictor, batch: Batch) -> Batch | None:
    with memory_errors(lambda: batch.shape, REMEDY):
        return with_hypotheses(predictor, batch)


def _probe_batch(tally: Tally, model: Seq2Seq, batch: Batch, options: ProbeOptions, donor: Donor | None) -> None:
    first = int(batch.indices[0])
    seeds = [derive_seed(options.seed, f"permutation {number} from example {first}") for number in range(options.permutations)]
    with memory_errors(lambda: batch.shape, REMEDY):
        given = None if donor is None else collect_weights(donor.predictor.models[0], batch, donor.examples)
        add_interventions(tally, model, batch, seeds, given)
        add_correlations(tally, model, batch)
