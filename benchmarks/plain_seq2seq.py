"""The same model as a user would write it with PyTorch alone; it shares no code with attnlab."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class PlainSeq2Seq(nn.Module):
    """Bidirectional LSTM, LSTM cell with input feeding (Luong et al. 2015), additive attention (Bahdanau et al. 2015).

    Args:
        source_size: types of the source.
        target_size: types of the target.
        embedding_size: of both.
        hidden_size: of each direction of the encoder, and of the decoder.
        dropout: on embeddings and readouts.
        padding: id of padding.
    """

    def __init__(
        self, source_size: int, target_size: int, embedding_size: int, hidden_size: int, dropout: float, padding: int
    ) -> None:
        super().__init__()
        self.padding = padding
        self.source_embedding = nn.Embedding(source_size, embedding_size, padding_idx=padding)
        self.target_embedding = nn.Embedding(target_size, embedding_size, padding_idx=padding)
        self.encoder = nn.LSTM(embedding_size, hidden_size, batch_first=True, bidirectional=True)
        self.bridge = nn.ModuleList(nn.Linear(2 * hidden_size, hidden_size) for _ in range(2))
        self.cell = nn.LSTMCell(embedding_size + hidden_size, hidden_size)
        self.key_layer = nn.Linear(2 * hidden_size, hidden_size, bias=False)
        self.query_layer = nn.Linear(hidden_size, hidden_size, bias=False)
        self.energy_layer = nn.Linear(hidden_size, 1, bias=False)
        self.readout = nn.Linear(3 * hidden_size, hidden_size)
        self.output = nn.Linear(hidden_size, target_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Return logits (batch, target_len, target_size) of the token after each of ``target``."""
        embedded = self.dropout(self.source_embedding(source))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        outputs, final = self.encoder(packed)
        memory, _ = pad_packed_sequence(outputs, batch_first=True)
        hidden, cell = (
            torch.tanh(layer(torch.cat([part[0], part[1]], dim=-1))) for layer, part in zip(self.bridge, final, strict=True)
        )
        keys = self.key_layer(memory)
        mask = source == self.padding
        fed = torch.zeros_like(hidden)
        readouts = []
        for vector in self.dropout(self.target_embedding(target)).unbind(1):
            hidden, cell = self.cell(torch.cat([vector, fed], dim=-1), (hidden, cell))
            energies = self.energy_layer(torch.tanh(self.query_layer(hidden).unsqueeze(1) + keys)).squeeze(-1)
            weights = torch.softmax(energies.masked_fill(mask, float("-inf")), dim=-1)
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            fed = torch.tanh(self.readout(torch.cat([hidden, context], dim=-1)))
            readouts.append(fed)
        logits: Tensor = self.output(self.dropout(torch.stack(readouts, dim=1)))
        return logits

    def loss(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss of a target's tokens."""
        logits = self(source, lengths, target[:, :-1])
        return cross_entropy(logits.float().flatten(0, 1), target[:, 1:].flatten(), ignore_index=self.padding)
