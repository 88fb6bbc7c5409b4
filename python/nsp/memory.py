"""Device memory that nsp adds to a training step, by formula: known before the first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from nsp.sizes import format_bytes

if TYPE_CHECKING:
    from nsp.context import Context

NCCL_BYTES = 580 << 20  # of one communicator, measured on H200 with NCCL 2.28; an estimate elsewhere


@dataclass(frozen=True)
class Memory:
    """Bytes of a rank: its communicator (estimate), the most that attention's workspace and exchange buffers
    take in any plan within the token budget, the arena that neighbours pull from, the most that checkpointed
    layers save of attention together; and what they keep of it on the host.
    """

    communicator: int
    workspace: int
    exchange: int
    arena: int = 0
    saved: int = 0
    offloaded: int = 0

    def __str__(self) -> str:
        parts = [
            f"communicator about {format_bytes(self.communicator)}",
            f"attention workspace up to {format_bytes(self.workspace)}",
            f"exchange buffers up to {format_bytes(self.exchange)}",
        ]
        if self.arena:
            parts.append(f"arena about {format_bytes(self.arena)}")
        if self.saved:
            parts.append(f"saved attention output up to {format_bytes(self.saved)}")
        if self.offloaded:
            parts.append(f"in memory of the host up to {format_bytes(self.offloaded)}")
        return f"memory of a rank beside the model's: {', '.join(parts)}"


def memory(context: Context, token_budget: int, dtype: torch.dtype, byte_budget: int | None = None) -> Memory:
    """token_budget: tokens that a rank holds in a round at most. dtype: of q, k and v. byte_budget: bytes
    saved of a layer (default: the context's).

    Exchange buffers hold one layer's at a time; what forward keeps for backward is activation memory. The
    bound leaves out a row a sequence (pieces differ by one) and up to 128 that flash pads each with.
    """
    shape = context.settings.shape
    workspace, exchange, arena = memory_bound(context, token_budget, dtype.itemsize)
    nccl = context.device.type == "cuda" and dist.get_backend(context.group) == "nccl"
    budget = context.settings.byte_budget if byte_budget is None else byte_budget
    saved = budget // saved_row_bytes(shape)  # tokens of a layer
    saved *= shape["layers"] * saved_row_bytes(shape, dtype.itemsize)
    offloaded = context.settings.host_budget // output_row_bytes(shape)
    offloaded *= shape["layers"] * output_row_bytes(shape, dtype.itemsize)
    return Memory(NCCL_BYTES if nccl else 0, workspace, exchange, arena, saved, offloaded)


def memory_bound(context: Context, token_budget: int, value_bytes: int) -> tuple[int, int, int]:
    """Most bytes of workspace, exchange buffers and arena of any plan within the budget. Values of q, k and v
    take `value_bytes`.
    """
    settings = context.settings
    saves = max(settings.byte_budget, settings.host_budget) > 0 or "byte_budget" in settings.auto
    heads, kv_heads, head_dim = (settings.shape[name] for name in ("heads", "kv_heads", "head_dim"))
    workspace, exchange, arena = context.world.memory_bound(
        token_budget, settings.ways, heads, kv_heads, head_dim, value_bytes, saves
    )
    return workspace, exchange, arena


def saved_row_bytes(shape: dict[str, Any], value_bytes: int | None = None) -> int:
    """Of a saved token in one layer: its attention output and a log-sum-exp a head. Without value_bytes: as
    planners count it, in the config's type.
    """
    if value_bytes is None:
        return int(shape["heads"] * (shape["head_dim"] * shape["bytes_per_value"] + 4))
    return int(shape["heads"] * (shape["head_dim"] * value_bytes + (8 if value_bytes == 8 else 4)))


def output_row_bytes(shape: dict[str, Any], value_bytes: int | None = None) -> int:
    """Of that, the output alone, which is what goes to the host."""
    return int(shape["heads"] * shape["head_dim"] * (value_bytes or shape["bytes_per_value"]))
