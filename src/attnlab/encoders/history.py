"""A recurrent encoder that looks back."""

from collections.abc import Callable

import torch
from torch import Tensor
from typing_extensions import override

from attnlab.attention import Composition, validate_composition
from attnlab.attention.scores import Score
from attnlab.encoders.encoder import Encoder, EncoderOutput, join_steps, token_mask
from attnlab.layers.recurrence import Recurrence


class HistoryEncoder(Encoder):
    """A recurrent network that attends to its own past states, so that not all of it need pass through the last.

    e_ti = score(h_{t-1}, h_i); a_t = softmax(e_t) over i < t; c_t = Σ_i a_ti h_i, with c_1 = 0; h_t = f([E x_t; c_t], h_{t-1}).
    The idea is that of the LSTM-network (Cheng et al. 2016, section 3.2), where averages of the past replace the state inside
    the gates; here the network keeps its own state and is told c_t besides, so that any network and any score will do. It
    reads from left to right alone.

    Parameters:
        recurrence: the network f, on inputs of input_size + hidden_size.
        score: its own.

    Args:
        input_size: size of an embedding.
        cell: makes the network f.
        score: makes the score from (query_size, memory_size), both the hidden size.
        hidden_size: units.
        num_layers: stacked layers; the top one's states are looked at, and by the top one's last.
        dropout: between layers, a probability.

    Raises:
        UserError: a score that does not look at the states, or dropout between the layers of one.
    """

    def __init__(
        self,
        input_size: int,
        *,
        cell: Callable[..., Recurrence],
        score: Callable[[int, int], Score],
        hidden_size: int,
        num_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.hidden_size = self.output_size = hidden_size
        self.num_layers = num_layers
        self.num_directions = 1
        self.recurrence = cell(input_size, hidden_size, hidden_size, num_layers=num_layers, dropout=dropout)
        self.score = score(hidden_size, hidden_size)
        validate_composition(Composition(self.score, comparison="past states"))

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        batch, source_len, _ = embeddings.shape
        step = self.recurrence.stepper(embeddings)
        zeros = embeddings.new_zeros(batch, self.num_layers, self.hidden_size)
        output, state = step(0, zeros[:, 0], (zeros,) * self.recurrence.state_parts)
        states = output.unsqueeze(1)
        keys = self.score.project_keys(states)
        history = [state]
        for position in range(1, source_len):
            # Sources begin at the left: as long as one goes on, none of its past is padding.
            weights = self.score(output.unsqueeze(1), keys).softmax(dim=-1)
            output, state = step(position, (weights @ states).squeeze(1), state)
            newest = output.unsqueeze(1)
            states = torch.cat([states, newest], dim=1)
            keys = torch.cat([keys, self.score.project_keys(newest)], dim=1)
            history.append(state)

        return join_steps(states, history, token_mask(embeddings, lengths))
