"""What a head promises, tried on a few numbers before anything is trained."""

import torch
from torch import Tensor, nn

from attnlab.attention.trial import are_close, preserve_state
from attnlab.decoders import DecoderOutput
from attnlab.encoders import EncoderOutput
from attnlab.errors import UserError, attempt
from attnlab.heads.head import Head


def validate_head(head: Head, encoded: EncoderOutput, decoded: DecoderOutput) -> None:
    """Try what a head promises: scores of all tokens, the same for some positions alone, and a loss that it learns by.

    Args:
        head: as it was made.
        encoded: two sources.
        decoded: what a decoder made of a few tokens for them.

    Raises:
        UserError: it raises, or does not keep its promise.
    """
    name = f"the head {type(head).__name__}"
    batch, tokens = decoded.readouts.shape[:2]
    positions = torch.arange(0, batch * tokens, 2)
    with preserve_state(head), attempt(name, head):
        memory = head.prepare(encoded, _copy_ids(head, encoded))
        scores = head(decoded, memory, nn.Identity())
        _check_scores(name, head, scores, (batch, tokens))
        with attempt(f"{name}, which must say in `reads` all that it reads of the decoder's output,", head):
            alone = head.score_chosen(decoded, memory, nn.Identity(), positions)
        if not are_close(alone, scores.flatten(0, 1)[positions]):
            raise UserError(
                f"{name} gives other scores where some positions alone are scored: let its class say in `reads` which fields "
                "of the decoder's output it reads, and read of each position nothing but its own"
            )
        head.train()
        with torch.enable_grad():
            # A head without parameters teaches the parts before it.
            decoded = decoded._replace(**{part: getattr(decoded, part).clone().requires_grad_() for part in head.reads})
            learned = head.score_chosen(decoded, head.prepare(encoded, _copy_ids(head, encoded)), nn.Identity(), positions)
            loss = head.loss(learned, _labels(head, learned))
    if loss.shape or not bool(loss.isfinite()):
        raise UserError(f"{name} gives a loss that is no single finite number")
    if not loss.requires_grad:
        raise UserError(f"{name} gives a loss that no gradient leads back from: nothing would be learned")


def _copy_ids(head: Head, encoded: EncoderOutput) -> Tensor | None:
    """Return the ids of sources whose every element the target vocabulary lacks."""
    if not head.needs_copy_ids:
        return None
    ids = head.targets.size + torch.arange(encoded.mask.shape[1])
    return ids.expand_as(encoded.mask).where(encoded.mask, head.targets.padding_id)


def _labels(head: Head, scores: Tensor) -> Tensor:
    if head.targets.numbers:
        return torch.zeros(len(scores), head.targets.numbers)
    return scores.detach().argmax(-1)  # possible, whatever is not


def _check_scores(name: str, head: Head, scores: Tensor, lengths: tuple[int, int]) -> None:
    if scores.ndim != 3 or scores.shape[:2] != lengths or (not head.targets.numbers and scores.shape[2] < head.targets.size):
        wanted = (*lengths, "numbers" if head.targets.numbers else f"{head.targets.size} or more tokens")
        raise UserError(f"{name} gives scores {tuple(scores.shape)}: they are ({', '.join(map(str, wanted))})")
    if bool((scores.isnan() | (scores == torch.inf)).any()) or not bool((scores > -torch.inf).any(-1).all()):
        raise UserError(f"{name} gives scores that are NaN or infinite, or -inf to every token")
    if head.all_tokens_possible and bool((scores == -torch.inf).any()):
        raise UserError(f"{name} gives -inf to a token: let its class say all_tokens_possible = False")
