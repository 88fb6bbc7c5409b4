"""What a model's steps take on its world, and what the devices have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from nsp._native import core
from nsp.memory import NCCL_BYTES, memory_bound
from nsp.model_bytes import computing_bytes, model_bytes, resident_bytes
from nsp.sharding import decoder_layers
from nsp.step_moments import Buffers, StepMemory

if TYPE_CHECKING:
    from nsp.context import Context

LIBRARIES = 64 << 20  # workspaces of cuBLAS
PROBE = 1 << 20  # rows for which buffers are asked; they are linear in rows


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
