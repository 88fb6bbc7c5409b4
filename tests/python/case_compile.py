"""Compiled decoder layers under FSDP2 next to one process: changing plans and lengths, with and without
checkpointing. Graphs are traced and differentiated, then run without code generation, which would take
minutes.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from case_parity import Case, context, make_steps, plans, relative, run_step
from small_model import LAYERS, make_model, reference
from torch._dynamo.utils import counters

import nsp

BATCHES = [(61, 3, 17, 1), (7,), (5, 1, 12, 30, 2, 9, 9)]


class Entered(Counter[str]):
    """Counts the contexts that checkpointing enters."""

    def contexts(self) -> tuple[Any, Any]:
        return self.counting("forward"), self.counting("recomputation")

    @contextlib.contextmanager
    def counting(self, name: str) -> Any:
        self[name] += 1
        yield


def run_plans(model: Any, lengths: tuple[int, ...]) -> dict[str, Any]:
    """Worst relative error over the plans, and attention calls and rounds of all of them."""
    case = Case(2, lengths, 2)
    steps, samples = make_steps(case)
    loss, grads = reference(make_model(), samples)
    worst, rounds = 0.0, 0
    steps.context.world.reset_counters()
    for given in plans(case, [samples.lengths[i] for i in steps.samples(0)]).values():
        steps.given = given
        step = steps[0]
        rounds += len(step.rounds)
        got_loss, got = run_step(model, step)
        worst = max(worst, abs(got_loss - loss) / loss, relative(got, grads))
    calls = steps.context.world.counters()["attention_calls"]
    return {"error": worst, "rounds": rounds, "calls": calls / LAYERS}


def compiled_layers() -> dict[str, Any]:
    """Errors, counts, and the graphs of every rank; rank 1 has only a dummy token in a plan of the second
    batch.
    """
    model = make_model(experts="batched_mm")
    nsp.compile_layers(model, backend="aot_eager")
    nsp.shard(model, dist.device_mesh.init_device_mesh("cpu", (2,)))
    nsp.attach(model, context(2, 8, 2))
    before = counters["stats"]["unique_graphs"]
    plain = [run_plans(model, lengths) for lengths in BATCHES]
    entered = Entered()
    model.gradient_checkpointing_enable({"use_reentrant": False, "context_fn": entered.contexts})
    checkpointed = [run_plans(model, lengths) for lengths in BATCHES]
    graphs: list[int] = [0, 0]
    dist.all_gather_object(graphs, counters["stats"]["unique_graphs"] - before)
    return {"plain": plain, "checkpointed": checkpointed, "entered": dict(entered), "graphs": graphs}


def cases(world: int) -> dict[str, Callable[[], Any]]:
    return {"compiled layers": compiled_layers} if world == 2 else {}
