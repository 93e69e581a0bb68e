"""The encoder of the dual-stage attention-based recurrent network."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad
from typing_extensions import override

from attnlab.attention import Composition, Part, validate_composition
from attnlab.attention.scores import Score
from attnlab.encoders.encoder import Encoder, EncoderOutput, join_steps, token_mask
from attnlab.errors import UserError
from attnlab.layers.recurrence import Recurrence


class InputAttention(Part):
    """α_t = softmax_k score(q_t, x^k), where x^k = (x_1^k, ..., x_n^k) is the course of one number over the source.

    A course is as long as ``max_length``, zero after the end of the source.

    Parameters:
        score: its own.

    Args:
        query_size: size of q_t.
        score: makes the score from (query_size, max_length).
        max_length: the longest source.

    Raises:
        UserError: a score that does not look at what is weighed, or a source that is longer than ``max_length``.
    """

    def __init__(self, query_size: int, *, score: Callable[[int, int], Score], max_length: int) -> None:
        super().__init__()
        self.max_length: int = max_length
        self.score = score(query_size, max_length)
        validate_composition(Composition(self.score, comparison="the courses of the input"))

    def keys(self, inputs: Tensor) -> Tensor:
        """Return what the score looks at (batch, input_size, ...), of inputs (batch, source_len, input_size)."""
        missing = self.max_length - inputs.shape[1]
        if missing < 0:
            raise UserError(f"a source has {inputs.shape[1]} elements: raise the encoder's max_length to it")
        keys: Tensor = self.score.project_keys(pad(inputs.transpose(1, 2), (0, missing)))
        return keys

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Return the weights (batch, input_size) of a query (batch, query_size)."""
        weights: Tensor = self.score(query.unsqueeze(1), keys).softmax(dim=-1)
        return weights.squeeze(1)


class DualStageEncoder(Encoder):
    """A recurrent network that weighs the series that it reads, at every time anew (Qin et al. 2017, section 3.2).

    α_t = softmax_k score([h_{t-1}; c_{t-1}], x^k), x^k being the whole course of series k (equations 8 and 9);
    x̃_t^k = α_t^k x_t^k (10); h_t, c_t = f(x̃_t, h_{t-1}, c_{t-1}) (11). The paper's score is the additive one. A decoder
    that attends to the h_t is the second stage, and any will do. Where the input is no series but embeddings, their single
    numbers are weighed.

    Parameters:
        input_attention: weighs the series.
        recurrence: the network f.

    Args:
        input_size: series, or size of an embedding.
        cell: makes the network f.
        score: makes the score from (query_size, memory_size), the size of the network's state and ``max_length``.
        hidden_size: units.
        num_layers: stacked layers; the top one's state asks.
        dropout: between layers, a probability.
        max_length: the longest source; a window of series is as long as its look-back.

    Raises:
        UserError: a score that does not look at the series, or dropout between the layers of one.
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
        max_length: int = 100,
    ) -> None:
        super().__init__()
        self.hidden_size = self.output_size = hidden_size
        self.num_layers = num_layers
        self.num_directions = 1
        self.recurrence = cell(0, input_size, hidden_size, num_layers=num_layers, dropout=dropout)
        query_size = self.recurrence.state_parts * hidden_size
        self.input_attention = InputAttention(query_size, score=score, max_length=max_length)

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        mask = token_mask(embeddings, lengths)
        inputs = embeddings.masked_fill(~mask.unsqueeze(-1), 0.0)
        keys = self.input_attention.keys(inputs)
        step = self.recurrence.stepper(inputs[..., :0])
        zeros = inputs.new_zeros(len(inputs), self.num_layers, self.hidden_size)
        state: tuple[Tensor, ...] = (zeros,) * self.recurrence.state_parts
        outputs, history = [], []
        for position, read in enumerate(inputs.unbind(1)):
            query = torch.cat([part[:, -1] for part in state], dim=-1)
            output, state = step(position, self.input_attention(query, keys) * read, state)
            outputs.append(output)
            history.append(state)
        return join_steps(torch.stack(outputs, dim=1), history, mask)
