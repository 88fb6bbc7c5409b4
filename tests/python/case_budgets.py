"""Budgets that are found, under FSDP2 on several ranks: equal everywhere, exact gradients, refusals; and the
peak of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from allocations import Allocations
from nsp._native import core
from nsp.budgets import find_budgets
from nsp.peak_report import PeakWatch
from nsp.row_plan import RowPlan
from nsp.step_memory import plan_peak
from small_model import Samples, config, make_model
from stash_steps import LENGTHS, PLAIN, errors, gathered, run
from torch.distributed.fsdp import MixedPrecisionPolicy
from transformers import AutoModelForCausalLM

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


def mixture(layers: int) -> Any:
    """A model that computes in bf16 and keeps fp32, as on GPUs."""
    made = config(
        heads=4, num_hidden_layers=layers, hidden_size=128, moe_intermediate_size=48, head_dim=32,
        num_experts=16, num_experts_per_tok=8, vocab_size=64,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(made, dtype=torch.float32, experts_implementation="grouped_mm")
    model.gradient_checkpointing_enable(PLAIN)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    return nsp.shard(model.train(), mesh, mixed_precision=policy)


def whole_step() -> dict[str, Any]:
    """The most that is alive in forward and backward of a sharded model, and what is predicted of it."""
    found = {}
    for name, layers, tokens in (("many rows", 3, 512), ("few rows", 3, 64)):
        model = mixture(layers)
        context = nsp.init(None, model.config, sp_max=1, optimizer_states=0, self_check=False)
        nsp.attach(model, context)
        plan = core().make_plan(2, 1, 2, 0, [[(0, tokens, 0, 1), (1, tokens, 1, 1)]], "given")
        ids = torch.arange(tokens)[None] % 64
        row = {"input_ids": ids, "position_ids": ids, "labels": ids, "shift_labels": ids}
        inputs = row | {"nsp_plan": RowPlan(context, context.schedule(plan), 0, tokens), "use_cache": False}
        model(**inputs).loss.backward()  # FSDP's first step makes what later ones reuse
        model.zero_grad()
        with Allocations() as alive:
            model(**inputs).loss.backward()
        memory = context.step_memory()
        peak = plan_peak(memory, plan, context.rank)
        assert peak is not None
        hidden = 4 * 4 * tokens  # the log-sum-exp is inside the operator
        found[name] = {"alive": alive.most, "predicted": peak.total - hidden, "moment": peak.moment}
        found[name]["layer"] = memory.model.layer
        context.close()
    return found


CASES: dict[int, list[Callable[[], Any]]] = {2: [auto, refused, whole_step]}


def cases(world: int) -> dict[str, Callable[[], Any]]:
    return {f"budgets: {case.__name__}": case for case in CASES.get(world, [])}
