"""Bytes of model state on a rank, as FSDP2 shards it: parameters, gradients, optimizer states, and what is
whole for a while. By formula from the model's parameters, so equal on all ranks, and known before there are
gradients or an optimizer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.fsdp import FSDPModule

from nsp.sharding import decoder_layers


@dataclass(frozen=True)
class ModelBytes:
    """Of the rank with the largest shards. `layer`: the largest decoder layer; `root`: all outside of them.

    Whole parameters are in the type of computation. `weights`: gradients of a whole layer, `mlp` those of
    its MLP alone; `scatter`: the same in the type of reduction, sent to be summed.
    """

    parameters: int  # shards, and the model's buffers
    gradients: int
    optimizer: int
    layer_gradients: int  # of `gradients`, those of one layer
    root: int = 0
    root_weights: int = 0
    layer: int = 0
    weights: int = 0
    mlp: int = 0
    scatter: int = 0

    @property
    def state(self) -> int:
        """What stays from step to step, gradients included."""
        return self.parameters + self.gradients + self.optimizer


def model_bytes(model: Any, world: int, value_bytes: int, optimizer_states: int = 2) -> ModelBytes:
    """model: before or after `fully_shard`; world: the ranks that share it. value_bytes: of the type of
    computation, where FSDP does not say. optimizer_states: values that the optimizer keeps of a trained one
    (AdamW: 2), in the parameter's type. ValueError: a model without decoder layers.
    """
    compute, reduce = _types(model, value_bytes)
    layers = decoder_layers(model)
    in_layers = {id(p) for layer in layers for p in layer.parameters()}
    own = list(model.parameters())
    root = [p for p in own if id(p) not in in_layers]
    largest = max(layers, key=lambda layer: _whole(layer.parameters(), 1))
    mlp = getattr(largest, "mlp", None)
    trained = _shards((p for p in own if p.requires_grad), world)
    state = ModelBytes(
        parameters=_shards(own, world) + sum(b.nbytes for b in model.buffers()),
        gradients=trained,
        optimizer=optimizer_states * trained,
        layer_gradients=_shards(_trained(largest), world),
    )
    if world == 1 and not isinstance(model, FSDPModule):
        return state  # one copy of everything, and gradients of its type
    return ModelBytes(
        parameters=state.parameters,
        gradients=state.gradients,
        optimizer=state.optimizer,
        layer_gradients=state.layer_gradients,
        root=_whole(root, compute),
        root_weights=_whole((p for p in root if p.requires_grad), compute),
        layer=_whole(largest.parameters(), compute),
        weights=_whole(_trained(largest), compute),
        mlp=_whole(_trained(mlp), compute) if mlp is not None else 0,
        scatter=_whole(_trained(largest), reduce),
    )


def computing_bytes(model: Any, value_bytes: int) -> int:
    """Bytes of a value in computation: FSDP's own type for it, else `value_bytes`."""
    return _types(model, value_bytes)[0]


def resident_bytes(model: Any, device: torch.device) -> int:
    """What the model's tensors take on this device now, gradients included."""
    found = [*model.parameters(), *model.buffers()]
    found += [p.grad for p in model.parameters() if p.grad is not None]
    return sum(local.nbytes for t in found if (local := _local(t)).device.type == device.type)


def _types(model: Any, value_bytes: int) -> tuple[int, int]:
    """Bytes of a value in computation and in reduction of gradients."""
    own = next(model.parameters()).dtype
    if not isinstance(model, FSDPModule):
        return value_bytes, max(4, value_bytes)
    policy = getattr(model._get_fsdp_state(), "_mp_policy", None)
    compute = getattr(policy, "param_dtype", None) or own
    reduce = getattr(policy, "reduce_dtype", None) or compute
    return compute.itemsize, reduce.itemsize


def _trained(module: Any) -> list[torch.nn.Parameter]:
    return [p for p in module.parameters() if p.requires_grad]


def _shards(parameters: Iterable[torch.nn.Parameter], world: int) -> int:
    """FSDP2 cuts the first dimension; the first rank has the largest part."""
    return sum(
        p.numel() // p.shape[0] * -(-p.shape[0] // world) * p.dtype.itemsize if p.dim() else p.nbytes
        for p in parameters
    )


def _whole(parameters: Iterable[torch.nn.Parameter], value_bytes: int) -> int:
    return sum(p.numel() for p in parameters) * value_bytes


def _local(tensor: Any) -> torch.Tensor:
    local: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return local
