"""The model of bench/train.py on its ranks, and how planners take turns on one batch."""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from batches import Batch
from lines import Lines, earlier_lines, hosts_for_nccl, median_ratio
from timing import paired, start_ranks
from training import RandomTokens, make_model, train, with_states
from variants import MINE, SERIAL, first_alike, profile_of, shared

import nsp

PLANNERS = (
    "static:N",
    "static",
    "static-tokens",
    "megatron-dcp",
    "flexsp",
    "nsp-2l",
    "algorithm1",
    MINE,
    SERIAL,
)


class Run:
    """The model on its ranks. `earlier`: lines of the same run before memory ran out."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.earlier = options, earlier_lines(options.json) if options.again else []
        self.began = self.earlier[0]["started"] if self.earlier else time.time()
        self.lost = {line["planner"] for line in self.earlier if "out_of_memory" in line}
        ranks_per_host = hosts_for_nccl(options.hosts)
        self.device = start_ranks()
        world = dist.get_world_size()
        self.lines = Lines(options.json, fresh=not self.earlier)
        self.profile = profile_of(options.profile, options.inside, options.between)
        self.model = make_model(options, self.device, world)
        config = copy.copy(self.model.config)
        config.dtype = torch.bfloat16  # what layers compute in, and so what is exchanged
        self.context = nsp.init(
            None, config, sp_max=world & -world, token_budget="auto", byte_budget="auto",
            device_bytes=options.device_bytes, profile=self.profile, ranks_per_host=ranks_per_host,
        )  # fmt: skip
        nsp.attach(self.model, self.context)
        if options.compile:
            nsp.compile_layers(self.model)
        self.optimizer = with_states(self.model)
        for group in self.optimizer.param_groups:
            group["lr"] = 0.0
        self.planner = ""  # that runs now

    def late(self) -> bool:
        return time.time() - self.began > self.options.seconds

    def train(self, planner: str, step: nsp.Step) -> dict[str, float]:
        """One step; what this rank saw of it."""
        self.planner, cuda = planner, self.device.type == "cuda"
        self.context.world.streaming = planner != SERIAL
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        _, loss = train(self.model, self.optimizer, step)
        self.context.world.streaming = True
        return {"loss": loss, "peak_bytes": torch.cuda.max_memory_allocated() if cuda else 0}


def one_step(run: Run, batch: Batch) -> nsp.PlannedSteps | str:
    """The batch as the only step; a sentence: it cannot be planned at all."""
    data = RandomTokens(batch.lengths, run.options.vocabulary)
    tokens = max(run.options.tokens * run.context.world_size, batch.max_length)
    try:
        return nsp.PlannedSteps(data, run.context, tokens)
    except ValueError as error:
        return str(error)


def planned(run: Run, steps: dict[Batch, nsp.PlannedSteps | str]) -> dict[Batch, dict[str, nsp.Plan | str]]:
    """Every planner's plans, each made by one rank. Collective."""
    names = [name for name in PLANNERS if name in (*run.options.planners, MINE) and name != SERIAL]
    jobs = [(batch, name) for batch, one in steps.items() if not isinstance(one, str) for name in names]

    def make(job: tuple[Batch, str]) -> nsp.Plan:
        one = steps[job[0]]
        assert not isinstance(one, str)
        return one.plan(0, job[1].replace("N", str(run.context.settings.sp_max)))

    plans: dict[Batch, dict[str, nsp.Plan | str]] = {batch: {} for batch in steps}
    for (batch, name), plan in shared(jobs, make).items():
        plans[batch][name] = plan
    return plans


def ready_steps(run: Run, one: nsp.PlannedSteps, plans: dict[str, nsp.Plan | str]) -> dict[str, nsp.Step]:
    """By planner, on the device. A plan that does not fit gives way to the sentence."""
    ready: dict[str, nsp.Step] = {}
    for name, plan in plans.items():
        try:
            if isinstance(plan, nsp.Plan) and name not in run.lost:
                ready[name] = one.step(0, plan).to(run.device)
        except RuntimeError as error:
            plans[name] = str(error)
    if SERIAL in run.options.planners and MINE in ready and SERIAL not in run.lost:
        ready[SERIAL] = ready[MINE]
    return ready


def measure(run: Run, batch: Batch, ready: dict[str, nsp.Step]) -> list[dict[str, Any]]:
    """A line for each planner; those with the same plan run once."""
    alike = first_alike({name: step.plan for name, step in ready.items() if name != SERIAL})
    alike |= {SERIAL: SERIAL} if SERIAL in ready else {}
    facts: dict[str, dict[str, float]] = {}

    def turn(name: str) -> None:
        facts[name] = run.train(name, ready[name])

    runs = {name: partial(turn, name) for name in dict.fromkeys(alike.values())}
    times = paired(runs, run.options.rounds, warm=1, late=run.late)
    for fact in facts.values():
        loss = torch.tensor(fact["loss"])
        dist.all_reduce(loss)
        fact["loss"] = float(loss) / run.context.world_size
    lines = []
    for name, first in alike.items():
        values, plan = times[first], ready[name].plan
        ms = statistics.median(values)
        line = {**batch.name, "planner": name, "step_ms": ms, "turns": len(values)}
        line |= {"tokens_per_second": 1e3 * plan.num_tokens / ms}
        line |= {"over_nsp": median_ratio(values, times[MINE])} if MINE in times else {}
        lines.append(line | predicted(run, plan, ms, name != SERIAL) | facts[first])
    return lines


def predicted(run: Run, plan: nsp.Plan, ms: float, overlap: bool) -> dict[str, float]:
    simulated = nsp.simulate(
        plan, model=run.context.settings.model, profile=run.profile, checkpoint="marks", overlap=overlap,
        fsdp=run.context.world_size > 1,
    )  # fmt: skip
    found = {"predicted_ms": 1e3 * plan.predicted.seconds, "simulated_ms": 1e3 * simulated.step_seconds}
    found |= {"simulated_exposed_exchange_ms": 1e3 * simulated.mean.exposed_exchange}
    return found | {"measured_over_simulated": ms / found["simulated_ms"]}
