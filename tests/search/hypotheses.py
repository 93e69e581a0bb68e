"""Hypotheses of small models, and what a model says of an output."""

import torch
from torch import Tensor

from attnlab.model import Seq2Seq
from attnlab.search import Hypothesis, Search
from composing import copy_ids, model, sentences

BOS, EOS = 2, 3
LIMITS = {"max_length_factor": 1.5, "max_length_offset": 2}


def search_sentences(search: Search, seed: int = 5, **made: str) -> list[list[Hypothesis]]:
    source, lengths = sentences([6, 2, 4, 3])
    return search(model(seed=seed, **made), source, lengths, bos=BOS, eos=EOS)


def score_output(made: Seq2Seq, source: Tensor, tokens: list[int]) -> float:
    """The model's own log-probability of an output, by teacher forcing."""
    target = torch.tensor([[BOS, *tokens]])
    memory, state = made.encode(source.unsqueeze(0), torch.tensor([len(source)]), copy_ids(source.unsqueeze(0)))
    decoded = made.decode(target[:, :-1], memory, state)
    log_probabilities = torch.log_softmax(made.scores(decoded, memory), -1)
    return float(log_probabilities.detach()[0].gather(1, target[0, 1:, None]).sum())
