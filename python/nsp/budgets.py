"""Budgets that are found instead of given: `token_budget="auto"`, `byte_budget="auto"`.

Capacity is what a rank's device has for tensors: free memory and what torch's allocator holds, less tensors
that are not the attached model's; the smallest over the ranks, agreed once, when the model is attached. A
part stays unused, since an allocator cannot fill every gap. From there all is formula (step_memory.py), equal
on all ranks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from nsp._native import core
from nsp.memory import NCCL_BYTES, memory_bound, saved_row_bytes
from nsp.model_bytes import computing_bytes, model_bytes, resident_bytes
from nsp.planning import Plan
from nsp.sharding import decoder_layers
from nsp.sizes import format_bytes
from nsp.step_memory import COUNTS, Buffers, Peak, StepMemory, most_bytes, plan_peak

if TYPE_CHECKING:
    from nsp.context import Context

HEADROOM = 0.06  # of the capacity: gaps between blocks, small tensors
MOST_TOKENS = 1 << 31
LIBRARIES = 64 << 20  # workspaces of cuBLAS
PROBE = 1 << 20  # rows for which buffers are asked; they are linear in rows


@dataclass(frozen=True)
class Budgets:
    """token_budget: most tokens a rank holds in a round. byte_budget: most bytes of attention output that it
    saves of a checkpointed layer.
    """

    token_budget: int
    byte_budget: int


def measured_capacity(context: Context, model: Any) -> int:
    """Bytes; collective over the context's ranks. ValueError: on CPU, where none is measured."""
    device = context.device
    if device.type != "cuda":
        raise ValueError("device_bytes: nothing is measured on cpu; give the bytes that a rank may use")
    free, _ = torch.cuda.mem_get_info(device)
    others = torch.cuda.memory_allocated(device) - resident_bytes(model, device)
    mine = free + torch.cuda.memory_reserved(device) - max(0, others)
    least = torch.tensor(mine, dtype=torch.int64, device=device)
    dist.all_reduce(least, op=dist.ReduceOp.MIN, group=context.group)
    return int(least)


def step_memory(context: Context, model: Any) -> StepMemory:
    """Of the model as it is now: sharded or not yet, checkpointed layers counted."""
    settings = context.settings
    value = computing_bytes(model, settings.shape["bytes_per_value"])
    shape = {**settings.shape, "bytes_per_value": value}
    layers = decoder_layers(model)
    attention = getattr(layers[0], "self_attn", None)
    return StepMemory(
        model=model_bytes(model, settings.world, value, settings.optimizer_states),
        shape=shape,
        row=core().row_bytes(json.dumps(shape), hasattr(attention, "q_norm")),
        buffers=_buffers(context, value),
        checkpointed=sum(checkpoints(layer) for layer in layers),
    )


def checkpoints(layer: Any) -> bool:
    """Whether a decoder layer is checkpointed, by the model's switch or in torch's wrapper."""
    return bool(getattr(layer, "gradient_checkpointing", False)) or hasattr(layer, "checkpoint_fn")


def find_budgets(context: Context, tokens_per_step: int, lengths: Sequence[int]) -> Budgets:
    """What steps of so many tokens, of samples of these lengths, are planned with. Given budgets stay;
    `auto` ones fill the capacity. Both `auto`: tokens as the default would have them, at most what fits, and
    the rest for saved attention. ValueError: not even one token fits, or a budget cannot be found yet.
    """
    settings = context.settings
    default = math.ceil(1.2 * tokens_per_step / settings.world)
    if not settings.auto:
        return Budgets(settings.token_budget or default, settings.byte_budget)
    memory = context.step_memory()
    capacity = int((1 - HEADROOM) * (context.capacity or 0))
    tokens = settings.token_budget or default
    if "token_budget" in settings.auto:
        saved = settings.byte_budget // saved_row_bytes(settings.shape)
        tokens = _largest(
            lambda n: most_bytes(memory, _counts(context, n, min(n, saved))) <= capacity, MOST_TOKENS
        )
        if tokens == 0:
            raise ValueError(_too_small(memory, context, capacity))
        longest = min(tokens_per_step, max(lengths, default=1))
        useful = max(default, -(-longest // settings.sp_max))
        tokens = min(tokens, useful if "byte_budget" in settings.auto else tokens_per_step)
    bytes_ = settings.byte_budget
    if "byte_budget" in settings.auto:
        if memory.checkpointed == 0:
            raise ValueError(
                "byte_budget: 'auto' saves nothing without checkpointing; call "
                "model.gradient_checkpointing_enable({'use_reentrant': False}) before nsp.PlannedSteps, or "
                "give 0"
            )
        rows = _largest(lambda n: most_bytes(memory, _counts(context, tokens, n)) <= capacity, tokens)
        bytes_ = rows * saved_row_bytes(settings.shape)
    return Budgets(tokens, bytes_)


def check_fits(memory: StepMemory, capacity: int, step: int, plan: Plan) -> None:
    """RuntimeError, the same on all ranks, when some rank of the plan would need more than its device has."""
    fullest = plan_peak(memory, plan)
    if fullest is not None and fullest.total > capacity:
        raise RuntimeError(_too_much(step, fullest, capacity))


def _too_much(step: int, peak: Peak, capacity: int) -> str:
    saved = peak.kinds.get("saved attention output", 0)
    remedy = "lower token_budget" + (" or byte_budget" if saved else "")
    return (
        f"step {step} does not fit: rank {peak.rank} holds {peak.tokens} tokens in round {peak.round} and "
        f"needs {peak}, but {format_bytes(capacity)} are there; {remedy}, or checkpoint more layers"
    )


def _too_small(memory: StepMemory, context: Context, capacity: int) -> str:
    need = most_bytes(memory, _counts(context, 1, 0))
    return (
        f"token_budget: 'auto' finds no room: one token needs {format_bytes(need)} with the model's state "
        f"of {format_bytes(memory.model.state)}, but {format_bytes(capacity)} may be used; shard over more "
        "ranks, or keep fewer optimizer states"
    )


def _counts(context: Context, tokens: int, saved: int) -> tuple[int, ...]:
    """The dearest rank with so many tokens: nearly all in groups, where each row exists twice."""
    settings = context.settings
    exchanged = tokens if settings.sp_max > 1 else 0
    kv_heads = settings.shape["kv_heads"]
    heads = max(
        max(kv_heads, inner) * (degree // inner if backend in ("gather", "usp-gather") else 1)
        for degree, backend, inner in settings.ways
    )
    counts = {
        "tokens": tokens,
        "read": tokens,
        "exchanged": exchanged,
        "exchanged_heads": exchanged * heads,
        "launched": tokens,
        "saved": saved,
    }
    return tuple(counts.get(name, 0) for name in COUNTS)


def _buffers(context: Context, value_bytes: int) -> Buffers:
    workspace, exchange, arena = memory_bound(context, PROBE, value_bytes)
    nccl = context.device.type == "cuda" and dist.get_backend(context.group) == "nccl"
    return Buffers(
        workspace=-(-workspace // PROBE),
        exchange=-(-exchange // PROBE),
        arena=-(-arena // PROBE),
        libraries=LIBRARIES if context.device.type == "cuda" else 0,
        communicators=NCCL_BYTES if nccl and context.world_size > 1 else 0,  # FSDP's; ours was there
    )


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest n up to `most` that fits, where all below it do; 0 if none does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
