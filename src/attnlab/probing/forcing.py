"""Forced decoding with whole output distributions: which examples, which targets, which weights."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from attnlab.attention import collect_head_weights, find_attentions
from attnlab.data.batches import Batch
from attnlab.data.examples import Examples
from attnlab.data.symbols import EOS, PAD
from attnlab.model import Seq2Seq
from attnlab.seeding import make_generator
from attnlab.tasks.predictor import Forced, Predictor


def label_log_probabilities(forced: Forced, batch: Batch) -> Tensor:
    """Return log p(y_t | y_<t, x) of every real label (labels,)."""
    return forced.log_probabilities.gather(1, batch.real_labels.unsqueeze(1)).squeeze(1)


def sum_by_example(values: Tensor, batch: Batch) -> NDArray[np.float64]:
    """Return (batch, 2): the sum over the real labels of each example of values (labels,), and their number."""
    real = batch.real.cpu()
    rows = real.nonzero()[:, 0]
    sums = torch.zeros(len(real), dtype=torch.float64).index_add_(0, rows, values.cpu().double())
    return torch.stack([sums, real.sum(dim=1).double()], dim=1).numpy()


def draw_examples(examples: Examples, count: int, seed: int) -> list[int]:
    """Return the positions of some examples whose sources are not empty, drawn from a seed; all if there are no more."""
    some = np.flatnonzero(examples.has_source)
    drawn = make_generator(seed, "probed examples").permutation(some)
    return sorted(drawn[:count].tolist())


def with_hypotheses(predictor: Predictor, batch: Batch) -> Batch | None:
    """Return a batch whose targets are what the model itself finds, token by token; without the sources for which it finds
    nothing, and None where that is all of them.
    """
    first, found = batch.target[:, 0], predictor.find_hypotheses(batch)
    rows = [row for row, hypotheses in enumerate(found) if hypotheses]
    if not rows:
        return None
    device, lengths = batch.source.device, batch.source_lengths[rows]
    width = int(lengths.max())
    written = [torch.tensor(found[row][0].tokens, device=device) for row in rows]
    labels = pad_sequence(written, batch_first=True, padding_value=PAD)
    target = torch.cat([first[rows].unsqueeze(1), labels], dim=1)
    if not bool((batch.labels == EOS).any()):  # of answers of one token: a model never learns to write their end
        labels = labels.masked_fill(labels == EOS, PAD)
    return Batch(
        source=batch.source[rows, :width],
        source_lengths=lengths,
        target=predictor.models[0].head.read(target),
        target_lengths=torch.tensor([len(tokens) + 1 for tokens in written]),
        labels=labels,
        indices=batch.indices[rows],
        copy_ids=None if batch.copy_ids is None else batch.copy_ids[rows, :width],
    )


@torch.inference_mode()
def collect_weights(model: Seq2Seq, batch: Batch, examples: Examples) -> list[Tensor]:
    """Return the weights (batch, heads, target_len, source_len) of all attentions of a model that writes a batch's targets.

    Args:
        model: whose.
        batch: of the same examples, as another model reads them.
        examples: as the model reads them: it may copy tokens where the other does not.
    """
    own = examples[batch.indices.tolist()].to(batch.source.device)
    memory, state = model.encode(own.source, own.source_lengths, own.copy_ids)
    with collect_head_weights(model.decoder) as collected:
        model.decode(batch.target[:, :-1], memory, state)
    return [torch.cat(collected[one.name], dim=2) for one in find_attentions(model.decoder)]
