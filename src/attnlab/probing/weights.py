"""What becomes of a model's output when its attention looks elsewhere."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attnlab.attention import find_attentions
from attnlab.attention.interventions import (
    GivenWeights,
    HeadAblation,
    Intervention,
    OwnWeights,
    PermutedWeights,
    UniformWeights,
    intervene,
)
from attnlab.data.batches import Batch
from attnlab.model import Seq2Seq
from attnlab.probing.figures import ACCURACY, CHANGE, LOSS, VARIATION, Tally
from attnlab.probing.forcing import label_log_probabilities, sum_by_example
from attnlab.tasks.predictor import Forced, force


def force_with(model: Seq2Seq, batch: Batch, intervention: Intervention) -> Forced:
    """Let a model write the targets of a batch while all attentions of its decoder go on with other weights."""
    with intervene(model.decoder, intervention):
        return force(model, batch)


def total_variation(one: Forced, other: Forced) -> Tensor:
    """Return ½ Σ_w |p(w) - p'(w)| at every real label (labels,)."""
    return 0.5 * (one.log_probabilities.exp() - other.log_probabilities.exp()).abs().sum(dim=-1)


@torch.inference_mode()
def add_interventions(tally: Tally, model: Seq2Seq, batch: Batch, seeds: Sequence[int], given: Sequence[Tensor] | None) -> None:
    """Count loss, accuracy and total variation with the weights as they are, permuted, uniform and given, and the loss without
    each head.

    Args:
        tally: is added to.
        model: with an attention.
        batch: with the targets that are to be written.
        seeds: of the permutations, each of which is made once.
        given: the weights of another model, for each attention (batch, heads, target_len, source_len), or None.
    """
    own = force_with(model, batch, OwnWeights())
    conditions: dict[str, list[Intervention]] = {
        "own": [OwnWeights()],
        "permuted": [PermutedWeights(seed) for seed in seeds],
        "uniform": [UniformWeights()],
    }
    if given is not None:
        conditions["swapped"] = [GivenWeights(given)]
    labels = batch.real_labels
    for name, interventions in conditions.items():
        found = [force_with(model, batch, one) if one.reads else own for one in interventions]
        log_probabilities = torch.stack([label_log_probabilities(one, batch).cpu().double() for one in found]).mean(dim=0)
        right = torch.stack([(one.log_probabilities.argmax(-1) == labels).cpu().double() for one in found]).mean(dim=0)
        subject = f"{name} weights"
        tally.add(f"{name}_loss", subject, LOSS, sum_by_example(-log_probabilities, batch))
        tally.add(f"{name}_accuracy", subject, ACCURACY, sum_by_example(right, batch))
        if name != "own":
            varied = torch.stack([total_variation(own, one) for one in found]).mean(dim=0)
            tally.add(f"{name}_variation", subject, VARIATION, sum_by_example(varied, batch))
    add_ablations(tally, model, batch, own)


def add_ablations(tally: Tally, model: Seq2Seq, batch: Batch, own: Forced) -> None:
    """Count how much the loss grows without each head of each attention, where there are several."""
    places = [
        (number, one.name, head) for number, one in enumerate(find_attentions(model.decoder)) for head in range(one.heads)
    ]
    for number, name, head in places if len(places) > 1 else ():
        without = force_with(model, batch, HeadAblation(number, head))
        grown = label_log_probabilities(own, batch) - label_log_probabilities(without, batch)
        tally.add(f"without.{name}.{head}", f"without {name}, head {head}:", CHANGE, sum_by_example(grown, batch))
