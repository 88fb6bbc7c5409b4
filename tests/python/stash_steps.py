"""Steps whose plans carry marks, run and counted, for the cases of recomputation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from case_parity import Case, context, make_steps, plans, relative
from nsp._native import core
from small_model import LAYERS, make_model, reference

import nsp

LENGTHS = (61, 3, 17, 1, 29, 8, 2, 40, 11)
PLAIN = {"use_reentrant": False}


def fresh(world: int, kwargs: dict[str, Any] | None = PLAIN, **switch: Any) -> Any:
    """A model of its own, sharded and attached, with checkpointing unless kwargs is None."""
    model = nsp.shard(make_model(), dist.device_mesh.init_device_mesh("cpu", (world,)))
    nsp.attach(model, context(world, 8, 2))
    if kwargs is not None:
        model.gradient_checkpointing_enable(kwargs, **switch)
    return model


def marked(data: bytes, choose: Callable[[int, dict[str, Any]], str]) -> bytes:
    """The plan with the mark that `choose` gives to each placement of a round, dearest first."""
    rounds = [r["placements"] for r in json.loads(data)["rounds"]]
    marks: list[list[str]] = []
    for placements in rounds:
        dearest = sorted(placements, key=lambda p: (-p["tokens"], p["sequence"]))
        chosen = {p["sequence"]: choose(i, p) for i, p in enumerate(dearest)}
        marks.append([chosen[p["sequence"]] for p in placements])
    result: bytes = core().with_marks(data, marks)
    return result


BUDGETS: dict[str, Callable[[int, dict[str, Any]], str]] = {
    "0": lambda i, p: "recompute",
    "tiny": lambda i, p: "save" if i == 0 else "recompute",
    "half": lambda i, p: "save" if i < len(LENGTHS) // 2 else "recompute",
    "every other": lambda i, p: "save" if i % 2 else "recompute",
    "all but leaves": lambda i, p: "save" if p["degree"] > 1 else "recompute",
    "unlimited": lambda i, p: "save",
    "all four": lambda i, p: ("save", "recompute", "offload", "save_qkv")[i % 4],
    "on the host": lambda i, p: "offload",
    "half, in part on the host": lambda i, p: (
        ("save", "offload")[i % 2] if i < len(LENGTHS) // 2 else "recompute"
    ),
}


def make_step(world: int, name: str, budget: str) -> tuple[nsp.Step, Any]:
    case = Case(world, LENGTHS, world)
    steps, samples = make_steps(case)
    given = plans(case, [samples.lengths[i] for i in steps.samples(0)])[name]
    assert given is not None
    steps.given = marked(given, BUDGETS[budget])
    return steps[0], samples


def held_bytes(world: Any) -> int:
    """Of attention that checkpointed layers keep now, on the device and on the host."""
    counters = world.counters()
    return int(counters["stash_bytes"] + counters["offloaded_bytes"])


def formula_bytes(plan: Any) -> int:
    """The same of one layer, by formula."""
    sizes = (plan.round, 8, 8)
    return int(plan.schedule.stash_bytes(*sizes) + plan.schedule.offload_bytes(*sizes))


def run(model: Any, step: nsp.Step, before_backward: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Loss and gradients of a step, and what this rank counted in forward and in backward."""
    world = step.rounds[0].plan.context.world
    model.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    counters = {"forward": dict.fromkeys(world.counters(), 0), "backward": dict.fromkeys(world.counters(), 0)}
    kept = []

    def count(phase: str) -> None:
        for name, value in world.counters().items():
            counters[phase][name] += value
        world.reset_counters()

    world.reset_counters()
    for row in step.rounds:
        loss = model(**row.inputs).loss
        kept.append(held_bytes(world))
        count("forward")
        before_backward()
        loss.backward()
        total += loss.detach().double()
        del loss
        count("backward")
    dist.all_reduce(total)
    return {
        "loss": total.item() / dist.get_world_size(),
        "grads": {n: p.grad.full_tensor() for n, p in model.named_parameters() if p.grad is not None},
        "counters": counters,
        "kept": kept,
        "held": held_bytes(world),
    }


def errors(got: dict[str, Any], samples: Any) -> float:
    loss, grads = reference(make_model(), samples)
    return max(abs(got["loss"] - loss) / loss, relative(got["grads"], {n: grads[n] for n in got["grads"]}))


def expected(step: nsp.Step, layers: int = LAYERS) -> dict[str, int]:
    """What the marks say of this rank's backward pass when `layers` are checkpointed."""
    rank = dist.get_rank()
    launches = exchanges = calls = 0
    for row, placements in zip(step.rounds, step.plan.rounds, strict=True):
        mine = [p for p in placements if p.first_rank <= rank < p.first_rank + p.degree]
        rest = [p for p in mine if p.mark == "recompute"]
        launches += len(rest) + (row.tokens == 0)  # and the dummy token
        exchanges += 2 * len({p.degree for p in placements if p.mark == "recompute"} - {1})
        calls += 1
    all_exchanges = sum(2 * len({p.degree for p in r} - {1}) for r in step.plan.rounds)
    return {
        "forward_launches": layers * launches,
        "exchanges": layers * exchanges + LAYERS * all_exchanges,
        "attention_calls": layers * calls,
    }


def gathered(value: Any) -> list[Any]:
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values
