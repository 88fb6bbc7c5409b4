"""Models with sliding windows: every rank's step against one process with the model's own masks, float64."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from case_parity import Case, Given, plans, relative, run_step
from small_model import Samples, make_windowed, reference

import nsp

WINDOW = 5
LENGTHS = (61, 3, 17, 1, 29, 5, 6, 40)
KINDS = ("mistral", "gemma3_text", "qwen3")


def windowed(kind: str) -> dict[str, Any]:
    """Relative errors and exchanges under each kind of plan; the gradients' error with other windows than the
    reference's under a mixed plan.
    """
    world = dist.get_world_size()
    model = nsp.shard(make_windowed(kind, WINDOW), dist.device_mesh.init_device_mesh("cpu", (world,)))
    context = nsp.init(None, model.config, sp_max=world)
    nsp.attach(model, context)
    samples = Samples(list(LENGTHS))
    steps = Given(samples, context, sum(LENGTHS))
    loss, grads = reference(make_windowed(kind, WINDOW), samples)
    found: dict[str, Any] = {"plans": {}, "planted": {}}
    for name, given in plans(Case(world, LENGTHS, world), [LENGTHS[i] for i in steps.samples(0)]).items():
        steps.given = given
        context.world.reset_counters()
        got_loss, got = run_step(model, steps[0])
        found["plans"][name] = {
            "error": max(abs(got_loss - loss) / loss, relative(got, grads)),
            "exchanges": context.world.counters()["exchanges"],
        }
        if name == "mixed a":
            for window in (WINDOW - 1, WINDOW + 1):
                _plant(model, window)
                found["planted"][window] = relative(run_step(model, steps[0])[1], grads)
            _plant(model, WINDOW)
    context.close()
    return found


def _plant(model: Any, window: int) -> None:
    """Another window in every sliding layer, where the models and the check read it."""
    model.config.sliding_window = window
    for layer in model.model.layers:
        if layer.self_attn._nsp_window:
            layer.self_attn._nsp_window = window
            if hasattr(layer.self_attn, "sliding_window"):
                layer.self_attn.sliding_window = window


def cases(world: int) -> dict[str, Callable[[], Any]]:
    if world not in (2, 4):
        return {}
    return {f"windows of {kind}": functools.partial(windowed, kind) for kind in KINDS}
