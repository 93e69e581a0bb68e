"""Greedy search."""

import torch
from torch import Tensor

from attnlab.model import Seq2Seq
from attnlab.search.search import Hypothesis, Search, only, select


class GreedySearch(Search):
    """Takes the most probable token at every step. Finished sentences leave the batch."""

    @torch.inference_mode()
    def __call__(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, *, bos: int, eos: int, copyable: Tensor | None = None
    ) -> list[list[Hypothesis]]:
        """See :meth:`Search.__call__`."""
        memory, state = model.encode(source, lengths, copyable)
        limits = self.limits(lengths).to(source.device)
        longest = int(limits.max())
        sentences = torch.arange(len(source), device=source.device)
        tokens = source.new_full((len(source),), bos)
        chosen = source.new_full((len(source), longest), eos)
        scores = torch.zeros(len(source), device=source.device)
        weights = torch.zeros(len(source), longest, source.shape[1], device=source.device)
        for step in range(longest):
            log_probabilities, step_weights, state = model.step(tokens, memory, state)
            log_probabilities = only(log_probabilities, eos, limits[sentences] == step + 1)
            best, tokens = log_probabilities.max(dim=-1)
            chosen[sentences, step] = tokens
            scores[sentences] += best
            weights[sentences, step] = step_weights.float()
            going_on = (tokens != eos).nonzero().squeeze(1)
            if not len(going_on):
                break
            if len(going_on) < len(tokens):
                sentences, tokens = sentences[going_on], tokens[going_on]
                memory, state = select(memory, going_on), select(state, going_on)
        weights = weights.cpu()
        found = []
        for sentence, (row, score) in enumerate(zip(chosen.tolist(), scores.tolist(), strict=True)):
            length = row.index(eos) + 1
            found.append([Hypothesis(row[:length], score, score, weights[sentence, :length])])
        return found
