"""FSDP2 over a Hugging Face decoder, in the grouping that `nsp.attach` needs."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def shard(
    model: torch.nn.Module, mesh: DeviceMesh, *, mixed_precision: MixedPrecisionPolicy | None = None
) -> torch.nn.Module:
    """Shards each decoder layer, and the rest (embedding, norm, head) as the root group; returns `model`.

    The root group stays unsharded after the forward pass: the chunked loss reads the head's weight there.
    ValueError: a model without `get_decoder().layers`.
    """
    policy = mixed_precision or MixedPrecisionPolicy()
    for layer in decoder_layers(model):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    return model


def decoder_layers(model: Any) -> list[torch.nn.Module]:
    """The decoder's layers, first to last."""
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else None
    layers = getattr(decoder, "layers", None)
    if layers is None:
        raise ValueError(
            f"model: {type(model).__name__} has no get_decoder().layers; shard it with fully_shard yourself"
        )
    return list(layers)
