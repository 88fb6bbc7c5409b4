"""`nsp.compile_layers`: decoder layers as compiled graphs, one for all of a model's plans and lengths.

A layer's `forward` is replaced; hooks (FSDP2's), checkpointing with its contexts, and the loss stay outside.
Inside, `nsp::attention` is one opaque operator: handle and round of the plan are its integer arguments, so
another plan is no other graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from nsp.sharding import decoder_layers

CHECKPOINTING = "forward_with_checkpointing"  # how transformers names a forward that checkpoints itself


def compile_layers(model: Any, *, backend: str = "inductor") -> None:
    """Compiles each decoder layer of `model` in place, at its first planned row: fullgraph, dynamic shapes.

    Before or after `nsp.shard` and `nsp.attach`, before or after checkpointing is switched on. Compiled are
    planned calls of two tokens and more; a row of one token (a rank's dummy) and calls without a plan run
    eagerly, since they would be graphs of their own. All layers of one kind share one graph a grad mode.

    ValueError: experts that no graph can hold (a loop over data), layers that are compiled already, or a
    model without `get_decoder().layers`.
    """
    experts = getattr(model.config, "_experts_implementation", None)
    if has_experts(model) and experts == "eager":
        raise ValueError(
            "experts_implementation: 'eager' loops over the experts that tokens chose, which no graph holds; "
            "load the model with experts_implementation='grouped_mm' on GPUs or 'batched_mm' on CPUs"
        )
    layers = decoder_layers(model)
    if any("forward" in vars(layer) for layer in layers):
        raise ValueError("model: a layer's forward is replaced already; call nsp.compile_layers once a model")
    for layer in layers:
        layer.forward = _Forward(layer, backend)


def has_experts(model: Any) -> bool:
    """Whether the config asks for experts."""
    return any(getattr(model.config, name, 0) for name in ("num_experts", "num_local_experts"))


class _Forward:
    """The `forward` of one compiled layer."""

    def __init__(self, layer: Any, backend: str) -> None:
        self.layer = layer
        self.compiled = _compiled(_without_checkpointing(type(layer).forward), backend)
        self.attention = [m for m in layer.modules() if hasattr(m, "is_causal")]

    def __call__(self, hidden_1TC: torch.Tensor, *args: Any, **keywords: Any) -> Any:
        layer, plan = self.layer, keywords.get("nsp_plan")
        eager = type(layer).forward  # of the moment: fully_shard gives a layer another class
        if plan is None or hidden_1TC.shape[1] < 2:
            return eager(layer, hidden_1TC, *args, **keywords)
        for module in self.attention:
            plan.check_attached(module)
        run = partial(self.compiled, layer, **keywords)
        if _without_checkpointing(eager) is not eager and _checkpointed(layer):
            return layer._gradient_checkpointing_func(run, hidden_1TC, *args)
        return run(hidden_1TC, *args)


@cache
def _compiled(forward: Callable[..., Any], backend: str) -> Callable[..., Any]:
    compiled: Callable[..., Any] = torch.compile(forward, fullgraph=True, dynamic=True, backend=backend)
    return compiled


def _without_checkpointing(forward: Any) -> Any:
    """A layer checkpoints in its `forward` (transformers 5.24) or in its `__call__` (5.17)."""
    while getattr(forward, "__code__", None) is not None and forward.__code__.co_name == CHECKPOINTING:
        forward = forward.__wrapped__
    return forward


def _checkpointed(layer: Any) -> bool:
    return bool(layer.gradient_checkpointing and layer.training and torch.is_grad_enabled())
