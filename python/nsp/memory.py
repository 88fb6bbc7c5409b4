"""Device memory that nsp adds to a training step, by formula: known before the first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from nsp.context import Context

NCCL_BYTES = 580 << 20  # of one communicator, measured on H200 with NCCL 2.28; an estimate elsewhere


@dataclass(frozen=True)
class Memory:
    """Bytes of a rank: its communicator (estimate), the most that attention's workspace and exchange buffers
    take in any plan within the token budget, the arena that neighbours pull from, the most that checkpointed
    layers save of attention together.
    """

    communicator: int
    workspace: int
    exchange: int
    arena: int = 0
    saved: int = 0

    def __str__(self) -> str:
        return (
            f"memory of a rank beside the model's: communicator about {_text(self.communicator)}, attention "
            f"workspace up to {_text(self.workspace)}, exchange buffers up to {_text(self.exchange)}"
            + (f", arena about {_text(self.arena)}" if self.arena else "")
            + (f", saved attention output up to {_text(self.saved)}" if self.saved else "")
        )


def memory(context: Context, token_budget: int, dtype: torch.dtype) -> Memory:
    """token_budget: tokens that a rank holds in a round at most. dtype: of q, k and v.

    Exchange buffers hold one layer's at a time; what forward keeps for backward is activation memory. The
    bound leaves out a row a sequence (pieces differ by one) and up to 128 that flash pads each with.
    """
    shape = context.settings.shape
    workspace, exchange, arena = memory_bound(context, token_budget, dtype.itemsize)
    nccl = context.device.type == "cuda" and dist.get_backend(context.group) == "nccl"
    saved = context.settings.byte_budget // _token_bytes(shape, shape["bytes_per_value"])  # tokens of a layer
    saved *= shape["layers"] * _token_bytes(shape, dtype.itemsize)
    return Memory(NCCL_BYTES if nccl else 0, workspace, exchange, arena, saved)


def memory_bound(context: Context, token_budget: int, value_bytes: int) -> tuple[int, int, int]:
    """Most bytes of workspace, exchange buffers and arena of any plan within the budget. Values of q, k and v
    take `value_bytes`.
    """
    settings = context.settings
    heads, kv_heads, head_dim = (settings.shape[name] for name in ("heads", "kv_heads", "head_dim"))
    workspace, exchange, arena = context.world.memory_bound(
        token_budget, settings.ways, heads, kv_heads, head_dim, value_bytes, settings.byte_budget > 0
    )
    return workspace, exchange, arena


def _token_bytes(shape: dict[str, Any], value_bytes: int) -> int:
    """Of a saved token in one layer: its attention output and a log-sum-exp a head."""
    count: int = shape["heads"] * (shape["head_dim"] * value_bytes + (8 if value_bytes == 8 else 4))
    return count


def _text(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
