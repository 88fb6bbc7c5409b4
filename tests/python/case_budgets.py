"""Budgets that are found, under FSDP2 on several ranks: equal everywhere, exact gradients, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from nsp.budgets import find_budgets
from nsp.peak_report import PeakWatch
from small_model import Samples, config, make_model
from stash_steps import LENGTHS, PLAIN, errors, gathered, run

import nsp


def attached(device_bytes: str, **keywords: Any) -> tuple[Any, nsp.Context]:
    model = nsp.shard(make_model(), dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),)))
    model.gradient_checkpointing_enable(PLAIN)
    made = config(dtype="float64")
    context = nsp.init(None, made, sp_max=2, device_bytes=device_bytes, self_check=False, **keywords)
    nsp.attach(model, context)
    return model, context


def auto() -> dict[str, Any]:
    """A step at automatic budgets: budgets by rank, the worst error, how much is saved, what is reported."""
    model, context = attached("6MiB", token_budget="auto", byte_budget="auto")
    budgets = find_budgets(context, sum(LENGTHS), LENGTHS)
    samples = Samples(list(LENGTHS))
    step = nsp.PlannedSteps(samples, context, sum(LENGTHS))[0]
    watch = PeakWatch(context, model)
    got = run(model, step)
    watch.add(step.plan)
    report = watch.report()
    assert report is not None
    error = errors(got, samples)
    saved = [p for placements in step.plan.rounds for p in placements if p.mark == "save"]
    context.close()
    return {
        "budgets": gathered([budgets.token_budget, budgets.byte_budget]),
        "error": error,
        "saved": len(saved),
        "report": str(report),
        "line": report.line(),
    }


def refused() -> list[list[Any]]:
    """What each rank is told of a step that cannot fit, and how often attention ran."""
    _, context = attached("1MiB", token_budget=4 * sum(LENGTHS))
    steps = nsp.PlannedSteps(Samples(list(LENGTHS)), context, sum(LENGTHS))
    text = ""
    try:
        next(iter(nsp.loader(steps)))
    except RuntimeError as error:
        text = str(error)
    calls = context.world.counters()["attention_calls"]
    told = gathered([text, calls])
    context.close()
    return told


CASES: dict[int, list[Callable[[], Any]]] = {2: [auto, refused]}


def cases(world: int) -> dict[str, Callable[[], Any]]:
    return {f"budgets: {case.__name__}": case for case in CASES.get(world, [])}
