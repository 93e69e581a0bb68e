"""The Transformer decoder, with any attention over the source."""

from typing import NamedTuple, cast

from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention import AttentionFactory, AttentionMechanism, Memory, Query
from attnlab.decoders.decoder import Decoder, DecoderOutput, DecoderState
from attnlab.encoders import Encoder, EncoderOutput
from attnlab.errors import UserError
from attnlab.layers.positions import Positions, PositionsFactory, Sinusoids
from attnlab.layers.transformer import FeedForward, PastStates, Residual, SelfAttention


class TransformerDecoder(Decoder):
    """Self-attention, attention over the source, feed-forward, num_layers times (Vaswani et al. 2017, section 3.1).

    In each layer x ← x + self-attention(LN x), x ← x + W c with c = attention(query LN x), x ← x + FFN(LN x); in the post-norm
    form x ← LN(x + self-attention(x)), and so on.

    The query of a layer's attention over the source is what that sublayer reads; its context is projected to the hidden size
    where it has another. The paper's attention has several heads; any other may stand in its place, so that Transformer and
    recurrent rows stand in one table. Every layer has an attention of its own; the weights reported are those of
    ``weights_layer``, and the other layers may leave theirs inside a fused kernel. A final layer normalisation closes the
    pre-norm form. Positions are the sinusoids of section 3.5 unless others are chosen.

    Parameters:
        input_projection: (hidden_size, embedding_size), where the two differ.
        positions: their own.
        layers: their own.
        norm: the final layer normalisation, if ``pre_norm``.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: makes the attention of a layer.
        hidden_size: size of a state; also of the readout and of the query.
        num_layers: layers.
        heads: of the self-attention.
        feedforward_size: units in the feed-forward layers.
        pre_norm: normalise before each sublayer, and not after it.
        dropout: on every sublayer's output, in the feed-forward layers and on the weights of the self-attention.
        weights_layer: whose weights are reported, from 0, or from -1 for the last; the one before the last often aligns best
            (Garg et al. 2019).
        positions: makes what the layers know of where a token stands from (size, heads, causal=...).

    Raises:
        UserError: no such layer, an attention without a context, or sizes that do not go together.
    """

    def __init__(
        self,
        embedding_size: int,
        encoder: Encoder,
        attention: AttentionFactory,
        *,
        hidden_size: int,
        num_layers: int = 2,
        heads: int = 4,
        feedforward_size: int = 256,
        pre_norm: bool = True,
        dropout: float = 0.1,
        weights_layer: int = -1,
        positions: PositionsFactory = Sinusoids,
    ) -> None:
        super().__init__(encoder, hidden_size)
        if not -num_layers <= weights_layer < num_layers:
            raise UserError(f"weights_layer {weights_layer} is none of {num_layers} layers, which count from 0")
        self.input_projection = (
            nn.Identity() if embedding_size == hidden_size else nn.Linear(embedding_size, hidden_size, bias=False)
        )
        attentions = [attention(hidden_size, encoder.output_size, embedding_size) for _ in range(num_layers)]
        if not attentions[0].context_size:
            raise UserError(
                "a Transformer decoder knows the source through its attention alone, and this one has no context: choose "
                "another attention"
            )
        self.layers = nn.ModuleList(
            TransformerDecoderLayer(
                own,
                hidden_size,
                heads=heads,
                feedforward_size=feedforward_size,
                pre_norm=pre_norm,
                dropout=dropout,
            )
            for own in attentions
        )
        self.norm = nn.LayerNorm(hidden_size) if pre_norm else nn.Identity()
        self.positions = positions(hidden_size, heads, causal=True)
        self.weights_layer = weights_layer % num_layers
        self.leaves_out_weights = num_layers > 1

    @override
    def start(self, encoded: EncoderOutput) -> tuple[tuple[Memory, ...], DecoderState]:
        made = (layer.attention.memory(encoded.states, encoded.mask, encoded.values) for layer in self._stack)
        memories = tuple(memory._replace(language=encoded.language) for memory in made)
        pasts = tuple(layer.self_attention.start(len(encoded.mask), encoded.states) for layer in self._stack)
        states = tuple(layer.attention.start(memory) for layer, memory in zip(self._stack, memories, strict=True))
        nothing = encoded.states.new_zeros(len(encoded.mask), 0)
        return memories, DecoderState(pasts, nothing, states)

    @property
    def attention(self) -> AttentionMechanism:  # type: ignore[override]  # an attribute would be registered twice
        """The attention whose weights are reported."""
        return self._stack[self.weights_layer].attention

    @property
    def _stack(self) -> list["TransformerDecoderLayer"]:
        return [cast(TransformerDecoderLayer, layer) for layer in self.layers]

    @override
    def forward(self, embeddings: Tensor, memory: tuple[Memory, ...], state: DecoderState) -> DecoderOutput:
        # A projection in half precision is widened again: what goes on from layer to layer has the precision of embeddings.
        states = self.positions.add(self.input_projection(embeddings).to(embeddings.dtype), state.hidden[0].keys.shape[2])
        steps: list[LayerStep] = []
        for index, layer in enumerate(self._stack):
            step: LayerStep = layer(
                states,
                embeddings,
                memory[index],
                state.hidden[index],
                state.attention[index],
                self.positions,
                need_weights=index == self.weights_layer,
            )
            states = step.states
            steps.append(step)
        reported = steps[self.weights_layer]
        after = DecoderState(tuple(step.past for step in steps), state.feedback, tuple(step.attention for step in steps))
        readouts = self.norm(states)
        return DecoderOutput(readouts, reported.weights, reported.contexts, readouts, embeddings, after)


class LayerStep(NamedTuple):
    """What came of one layer."""

    states: Tensor
    """(batch, target_len, hidden_size)."""
    weights: Tensor
    contexts: Tensor
    past: PastStates
    attention: object
    """The attention's state."""


class TransformerDecoderLayer(nn.Module):
    """One layer of a :class:`TransformerDecoder`.

    Parameters:
        self_attention, attention, feedforward: their own.
        self_attention_residual, attention_residual, feedforward_residual: the layer normalisations.
        combine: (hidden_size, context_size), no bias, where the two differ.

    Args:
        attention: over the source.
        size: of a state.
        heads: of the self-attention.
        feedforward_size: units in the feed-forward layer.
        pre_norm: normalise before each sublayer.
        dropout: a probability.
    """

    def __init__(
        self, attention: AttentionMechanism, size: int, *, heads: int, feedforward_size: int, pre_norm: bool, dropout: float
    ) -> None:
        super().__init__()
        self.self_attention = SelfAttention(size, heads=heads, dropout=dropout)
        self.attention = attention
        context_size = attention.context_size
        self.combine = nn.Identity() if context_size == size else nn.Linear(context_size, size, bias=False)
        self.feedforward = FeedForward(size, hidden_size=feedforward_size, dropout=dropout)
        self.self_attention_residual = Residual(size, pre_norm=pre_norm, dropout=dropout)
        self.attention_residual = Residual(size, pre_norm=pre_norm, dropout=dropout)
        self.feedforward_residual = Residual(size, pre_norm=pre_norm, dropout=dropout)

    def forward(
        self,
        states: Tensor,
        embeddings: Tensor,
        memory: Memory,
        past: PastStates,
        attention: object,
        positions: Positions,
        *,
        need_weights: bool,
    ) -> LayerStep:
        """Turn states (batch, target_len, size) into new ones."""
        own, past = self.self_attention.attend_backwards(self.self_attention_residual.prepare(states), past, positions)
        states = self.self_attention_residual.add(states, own)
        query = Query(self.attention_residual.prepare(states), embeddings)
        contexts, weights, attention = self.attention(query, memory, attention, need_weights=need_weights)
        states = self.attention_residual.add(states, self.combine(contexts))
        states = self.feedforward_residual.add(states, self.feedforward(self.feedforward_residual.prepare(states)))
        return LayerStep(states, weights, contexts, past, attention)
