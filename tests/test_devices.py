"""Models on a GPU compute what they compute on a CPU. The bodies run on the CPU too, where no GPU is at hand."""

import itertools
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from attnlab.data.batches import Batch
from attnlab.model import Seq2Seq
from attnlab.search import BeamSearch, Ensemble, GreedySearch, Hypothesis, SamplingSearch, Search
from attnlab.training.module import SequenceModule
from commands import TINY, Cli, cli
from composing import END, START, UNATTENDED, VOCABULARY, copy_ids, model, possible, sentences, singles
from conftest import exhaustive_but, options

__all__ = ["cli"]

CPU = torch.device("cpu")
DECODERS = [f"attention=none,decoder={name}" if name in UNATTENDED else f"decoder={name}" for name in options("decoder")]
HEADS = [f"head={name}" for name in options("head")]
KEPT = ["decoder=luong_feeding", "decoder=transformer", "head=pointer_generator"]
LENGTHS = [6, 2, 4, 3]
LIMITS = {"max_length_factor": 1.5, "max_length_offset": 2}
ONE_WORD = {"max_length_factor": 0.0, "max_length_offset": 2}
"""Of a decoder to which all orders of an answer are equally good."""

each_decoder_and_head = pytest.mark.parametrize("overrides", exhaustive_but(KEPT, [*DECODERS, *HEADS]))


def made_for(device: torch.device, overrides: str, dtype: torch.dtype = torch.float32) -> Seq2Seq:
    made = model(*overrides.split(","), seed=5, dtype=dtype).to(device)
    for part in made.modules():
        if isinstance(part, nn.RNNBase):
            part.train()  # cuDNN computes gradients in no other mode; these have no dropout
    return made


def forced(made: Seq2Seq, device: torch.device, decode: Any = None) -> Tensor:
    """The scores of given targets (batch · target_len, tokens)."""
    source, lengths = sentences(LENGTHS)
    target = possible(made, sentences([5, 5, 5, 5], seed=1)[0], lengths)
    memory, state = made.encode(source.to(device), lengths, copy_ids(source).to(device))
    decoded = (decode or made.decode)(target[:, :-1].to(device), memory, state)
    return made.scores(decoded, memory).flatten(0, 1)


def gradients(made: Seq2Seq, device: torch.device, decode: Any = None) -> dict[str, Tensor]:
    """Of the loss that a training step has, where there are any; with the loss itself."""
    scores = forced(made, device, decode)
    labels = torch.full((len(scores),), END, device=device)  # which every head can write
    loss = cross_entropy(scores.float(), labels)
    made.zero_grad()
    loss.backward()
    found = {name: p.grad.float().cpu() for name, p in made.named_parameters() if p.grad is not None and p.grad.any()}
    return {"loss": loss.detach().cpu(), **found}


def agree(ours: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        scale = max(1e-3, float(value.abs().max()))
        assert float((ours[name] - value).abs().max()) <= tolerance * scale, name


@each_decoder_and_head
def test_a_training_step(overrides: str, device: torch.device) -> None:
    agree(gradients(made_for(device, overrides), device), gradients(made_for(CPU, overrides), CPU), 1e-3)


@each_decoder_and_head
def test_a_training_step_in_bfloat16(overrides: str, device: torch.device) -> None:
    made = made_for(device, overrides)
    with torch.autocast(device.type, torch.bfloat16):
        ours = gradients(made, device)
    theirs = gradients(made_for(CPU, overrides), CPU)
    torch.testing.assert_close(ours["loss"], theirs["loss"], rtol=0.02, atol=0.02)
    for name, value in theirs.items():
        if name != "loss" and float(value.norm()) > 1e-2:
            assert float((ours[name] - value).norm() / value.norm()) < 0.25, name


@pytest.mark.parametrize("network", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16], ids=["", "whose weights FSDP has cast"])
def test_mixed_precision_casts_no_network_to_float16(network: str, weights: torch.dtype, device: torch.device) -> None:
    source, lengths = sentences(LENGTHS)
    made, types = made_for(device, f"encoder={network}", weights), []
    made.encoder.register_forward_hook(lambda module, inputs, outputs: types.append(outputs.states.dtype))
    with torch.autocast(device.type, torch.bfloat16):
        made.encode(source.to(device), lengths)
    assert types[0] in (torch.float32, torch.bfloat16)


@pytest.mark.exhaustive
@pytest.mark.parametrize("overrides", [*DECODERS, *HEADS])
def test_a_compiled_training_step(overrides: str, device: torch.device) -> None:
    torch._dynamo.reset()
    made = made_for(device, overrides)
    compiled = torch.compile(made.decode, backend="inductor" if device.type == "cuda" else "aot_eager")
    agree(gradients(made, device, compiled), gradients(made_for(CPU, overrides), CPU), 1e-3)


def find(search: Search, device: torch.device, overrides: str, ensemble: bool = False) -> list[list[Hypothesis]]:
    """What a search finds in double precision, in which no two hypotheses are as good."""
    made: Any = made_for(device, overrides, dtype=torch.float64)
    if ensemble:
        made = Ensemble([made, model(*overrides.split(","), seed=6).to(device)])
    source, lengths = sentences(LENGTHS)
    return search(made, source.to(device), lengths, bos=START, eos=END, copy_ids=copy_ids(source).to(device))


def same(ours: list[list[Hypothesis]], theirs: list[list[Hypothesis]]) -> None:
    assert [[h.tokens for h in each] for each in ours] == [[h.tokens for h in each] for each in theirs]
    for one, other in zip(itertools.chain(*ours), itertools.chain(*theirs), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)  # the vocabulary's softmax is in float32
        assert one.weights.device == CPU
        torch.testing.assert_close(one.weights, other.weights, rtol=0, atol=1e-5)


@each_decoder_and_head
@pytest.mark.parametrize("kind", [GreedySearch, BeamSearch, SamplingSearch])
def test_a_search(overrides: str, kind: type[Search], device: torch.device) -> None:
    limits = LIMITS if made_for(CPU, overrides).decoder.reads_targets else ONE_WORD
    search = kind(**limits, **({kind.max_hypotheses_setting: 3} if kind.max_hypotheses_setting else {}))
    same(find(search, device, overrides), find(search, CPU, overrides))


@pytest.mark.parametrize("head", options("head"))
def test_a_search_with_an_ensemble(head: str, device: torch.device) -> None:
    search = BeamSearch(width=3, **LIMITS)
    same(find(search, device, f"head={head}", ensemble=True), find(search, CPU, f"head={head}", ensemble=True))


class HostReads(TorchDispatchMode):
    """Refuses what makes a host wait for a GPU: reading a number, and results whose shape depends on values."""

    OPERATIONS = ("_local_scalar_dense", "nonzero", "is_nonzero", "masked_select", "unique", "equal")

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        name = function.name().removeprefix("aten::").partition(".")[0]
        indices = arguments[1] if name in ("index", "index_put", "index_put_") else ()
        if name.startswith("index_put") and arguments[2].numel() == 1:
            indices = ()  # which fills where a mask is true
        by_values = any(isinstance(index, Tensor) and index.dtype == torch.bool for index in indices or ())
        if (name in self.OPERATIONS or by_values) and not _reads_packed_sizes():
            raise AssertionError(f"{function.name()} waits for the GPU")
        return function(*arguments, **(named or {}))


def _reads_packed_sizes() -> bool:
    """Whether it is torch that reads how many sources of a packed batch are so long, which stays on the host."""
    return any(frame.filename == torch.nn.modules.rnn.__file__ for frame in traceback.extract_stack())


def _wait(tensor: Tensor) -> Tensor:
    raise AssertionError("Tensor.cpu waits for the GPU")


@contextmanager
def no_waiting(device: torch.device) -> Iterator[None]:
    """Fail where the host waits for the device."""
    if device.type == "cpu":
        # On the CPU there is nothing to dispatch, and torch asks so for the order of a packed batch.
        with HostReads(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(Tensor, "cpu", _wait)
            yield
        return
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("overrides", exhaustive_but(KEPT, [",".join(one) for one in singles()]))
def test_no_step_waits_for_the_device(overrides: str, device: torch.device) -> None:
    made = made_for(device, overrides)
    source, lengths = sentences(LENGTHS)
    tokens = torch.full((len(lengths),), START, device=device)
    with torch.inference_mode():
        memory, state = made.encode(source.to(device), lengths, copy_ids(source).to(device))
        made.step(tokens, memory, state)  # what is done once, such as reading a library, may wait
        with no_waiting(device):
            for _ in range(3):
                scores, _, state = made.step(tokens, memory, state)
                tokens = scores.argmax(-1)


TRAINING = ["decoder=luong_feeding", "encoder=embeddings", "head=pointer_generator", "head=pointing", "head=values"]
LOSSES = [(), ("auxiliary=coverage",), ("auxiliary=supervised",), ("objective.teacher_forcing.ratio=0.5",)]


@pytest.mark.parametrize("overrides", exhaustive_but(TRAINING, [",".join(one) for one in singles()]))
def test_no_training_waits_for_the_device(overrides: str, device: torch.device) -> None:
    made = made_for(device, overrides).train()
    source, lengths = sentences(LENGTHS)
    target, target_lengths = sentences([5, 2, 4, 3], seed=1)
    target = possible(made, target, lengths)
    labels = torch.randn(*target.shape, VOCABULARY) if made.head.writes_values else target
    batch = Batch(source, lengths, target, target_lengths, labels[:, 1:], torch.arange(4), copy_ids=copy_ids(source))
    optimizer = torch.optim.Adam(made.parameters(), fused=True)
    for repeated in range(2):
        with no_waiting(device) if repeated else nullcontext():  # what is done once may wait
            own = batch.to(device)
            memory, state = made.encode(own.source, own.source_lengths, own.copy_ids)
            scores = made.scores(made.decode(own.target[:, :-1], memory, state), memory, own.positions)
            made.head.loss(scores, own.real_labels).backward()
            nn.utils.clip_grad_norm_(made.parameters(), 1.0)
            optimizer.step()


@pytest.mark.few(1)
@pytest.mark.parametrize("losses", LOSSES, ids=",".join)
def test_no_step_of_a_run_waits_for_the_device(
    losses: tuple[str, ...], device: torch.device, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, steps = SequenceModule.training_step, []

    def watched(module: SequenceModule, batch: Batch, batch_index: int) -> Tensor:
        steps.append(batch_index)
        with no_waiting(device) if batch_index else nullcontext():
            return step(module, batch, batch_index)

    monkeypatch.setattr(SequenceModule, "training_step", watched)
    where = "gpu" if device.type == "cuda" else "cpu"
    assert cli("train", *TINY, "logger=none", *losses, f"trainer.accelerator={where}", "batches.size=32") == 0
    assert max(steps) == 2


def test_what_waits_is_found(device: torch.device) -> None:
    numbers = torch.arange(4, device=device)
    for wait in (lambda: int(numbers[0]), lambda: numbers.nonzero(), lambda: numbers[numbers > 1], lambda: bool(numbers.any())):
        with pytest.raises((AssertionError, RuntimeError)), no_waiting(device):
            wait()


@pytest.mark.exhaustive
@pytest.mark.parametrize("overrides", DECODERS)
def test_steps_as_a_cuda_graph(overrides: str, device: torch.device) -> None:
    """On a GPU a step is captured once and replayed; on a CPU it is traced alone."""
    torch._dynamo.reset()
    made = made_for(device, overrides)
    how = {"mode": "reduce-overhead"} if device.type == "cuda" else {"backend": "aot_eager"}
    step: Any = torch.compile(made.step, **how)
    source, lengths = sentences(LENGTHS)
    tokens = torch.full((len(lengths),), START, device=device)
    with torch.no_grad():
        memory, state = made.encode(source.to(device), lengths)
        captured = state
        for _ in range(5):
            scores, weights, state = made.step(tokens, memory, state)
            torch.compiler.cudagraph_mark_step_begin()
            found = torch.utils._pytree.tree_map_only(Tensor, torch.clone, step(tokens, memory, captured))
            torch.testing.assert_close(found[0], scores, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(found[1], weights, rtol=1e-4, atol=1e-4)
            captured, tokens = found[2], scores.argmax(-1)
