"""Multiply-adds, against sums of products of sizes."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from attnlab.attention import Attention
from attnlab.data.batches import Batch
from attnlab.training.arithmetic import count_multiply_adds, flop_counter
from composing import VOCABULARY, model, sentences

SOURCE, TARGET, SIZE = [6, 2, 4], [5, 7, 3], 8


def test_products_of_every_kind_are_counted() -> None:
    with flop_counter() as counter, torch.no_grad():
        nn.Linear(3, 4)(torch.randn(2, 5, 3))
        found = [counter.get_total_flops() // 2]
        nn.LSTM(3, 4, batch_first=True)(torch.randn(2, 5, 3))
        found.append(counter.get_total_flops() // 2)
        keys = torch.randn(2, 3, 6, 4)
        scaled_dot_product_attention(torch.randn(2, 3, 5, 4), keys, keys, attn_mask=torch.ones(2, 1, 5, 6, dtype=torch.bool))
        found.append(counter.get_total_flops() // 2)
        _ = torch.randn(2, 5, 3) @ torch.randn(3)
        found.append(counter.get_total_flops() // 2)
    parts = [2 * 5 * 3 * 4, 2 * 5 * 4 * 4 * (3 + 4), 2 * (2 * 3 * 5 * 6 * 4), 2 * 5 * 3]
    assert found == [sum(parts[: count + 1]) for count in range(4)]


@pytest.mark.exhaustive
def test_what_flex_attention_computes_is_counted_as_its_parts_are() -> None:
    source, lengths = sentences(SOURCE)
    target, target_lengths = sentences(TARGET)
    batch = Batch(source, lengths, target, target_lengths, target[:, 1:], torch.arange(3), None, None)
    overrides = ["attention=scaled_dot", "decoder=transformer", "decoder.heads=2"]
    made = {name: model(*overrides, f"attention.kernel={name}", dtype=torch.float32).eval() for name in ("eager", "flex")}
    assert count_multiply_adds(made["flex"], [batch]) == count_multiply_adds(made["eager"], [batch]) > 0
    assert {part.kernel for part in made["flex"].modules() if isinstance(part, Attention)} == {"flex"}


@pytest.mark.parametrize("attention", ["none", "dot"])
def test_a_model_is_the_sum_of_its_parts_for_a_target_token(attention: str) -> None:
    made = model("encoder=embeddings", "decoder=luong", f"attention={attention}", "decoder.hidden_size=6", dtype=torch.float32)
    source, lengths = sentences(SOURCE)
    target, target_lengths = sentences(TARGET)
    labels = target[:, 1:]
    batch = Batch(source, lengths, target, target_lengths, labels, torch.arange(3), None, None)
    products: list[int] = []

    def note(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        products.append(
            output.numel() // output.shape[-1] * sum(weight.numel() for weight in module.parameters() if weight.dim() > 1)
        )

    for part in made.modules():
        if isinstance(part, nn.Linear):
            part.register_forward_hook(note)
    found = count_multiply_adds(made, [batch])
    steps, cell = labels.numel(), 4 * 6 * (6 + 6)
    attended = 2 * steps * source.shape[1] * 6 if attention == "dot" else 0
    real = int((labels != 0).sum())
    assert real < steps, "there is padding"
    assert sum(products) >= real * VOCABULARY * 6
    assert found * real == sum(products) + steps * cell + attended
