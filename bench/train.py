"""Training steps under every planner's plans of the same batches, on the GPUs of a host.

How to run (make finds the GPUs, installs first where needed, and writes OUT/train.jsonl):

    make bench-train OUT=results                                    # all GPUs of this host
    make bench-train GPUS=2 OUT=results ARGS="--max-length 192K --batches 3"
    torchrun --nproc-per-node 8 --max-restarts 3 bench/train.py --json results/train.jsonl
    NCCL_P2P_DISABLE=1 make bench-train ARGS="--inside 23"          # through host memory; plans cost it so
    make bench-train ARGS="--hosts 2 --between 3"                   # NCCL_HOSTID parts the host into two

The host's topology: NCCL_P2P_DISABLE and NCCL_HOSTID end peer copies where they end NCCL's (the line
"transport" says what is left), but plans are made for the links of --profile: give --inside or --between.
NCCL_HOSTID alone leaves plans for one host; --hosts sets it on every rank, and ranks_per_host with it.

Qwen3-MoE at the widths of 30B-A3B (random weights and tokens, few layers, small vocabulary), FSDP2, bf16,
every layer checkpointed and on GPUs compiled, clipping, AdamW at learning rate 0: every planner meets the same
weights, and its loss is the same but for rounding. Batches are consecutive sequences of the traces up to the
maximum length, --tokens a GPU, or as many as the longest may have; of a second maximum length the first
batches that hold a sequence longer than the first allows. Token and byte budget are `auto`, one for all.
Plans are made before anything is timed. Planners run in turns on a batch, after a turn that is not counted.
"nsp serial" is nsp's plan with every exchange beside nothing. Expert parallelism: the trainer has none
(nsp.plan alone knows it), so it is 1.

Lines: for each batch and planner the median step ms of the slowest rank, tokens/s, the median paired ratio over
nsp, loss, peak memory, and what was predicted: the plan's own seconds (no overlap, no recompute), and the
simulated step. Last, summaries by maximum length. A plan that does not fit says so and is not run. If memory
runs out all the same, the ranks end; torchrun starts them again (--max-restarts), with the batches that are
done kept, without that planner.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from batches import TRACES, trace_lengths
from lines import Lines, hosts_for_nccl, median_ratio, place, some_of
from nsp._native import core
from timing import any_rank, paired, start_ranks
from training import RandomTokens, make_model, train, with_states
from variants import MINE, SERIAL, described, profile_of, shared

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


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, cuda = parser.add_argument, torch.cuda.is_available()
    add("--max-length", type=_limits, default=_limits("192K,384K" if cuda else "256,512"), help="192K,384K")
    add("--traces", type=some_of(TRACES), default=list(TRACES))
    add("--planners", type=some_of(PLANNERS), default=list(PLANNERS), help="besides nsp (all); N: all ranks")
    add("--batches", type=int, default=2, help="of each trace and maximum length (2)")
    add("--rounds", type=int, default=3, help="timed turns of a batch (3)")
    add("--tokens", type=int, default=65536 if cuda else 256, help="of a GPU (65536)")
    add("--layers", type=int, default=2)
    add("--hidden", type=int, default=2048 if cuda else 64)
    add("--experts", type=int, default=128 if cuda else 4)
    add("--vocabulary", type=int, default=8192 if cuda else 128)
    add("--compile", action=argparse.BooleanOptionalAction, default=cuda, help="decoder layers (on GPUs)")
    add("--device-bytes", default=None if cuda else "1GiB", help="that a rank may use (measured)")
    add("--seconds", type=float, default=240, help="since the start; no batch begins later (240)")
    add("--hosts", type=int, default=1, help="that NCCL and the planners see (1)")
    add("--profile", default="h200" if cuda else "cpu-gloo", help="cost profile of the plans")
    add("--inside", type=float, help="GB/s a GPU inside a host, instead of the profile's (h200: 280)")
    add("--between", type=float, help="GB/s a GPU between hosts, instead of the profile's (h200: 42)")
    add("--json", default="", metavar="FILE")
    options = parser.parse_args()
    options.checkpoint = True
    return options


def _limits(text: str) -> list[int]:
    """192K,384K in increasing order; K is 1,024."""
    try:
        return sorted(
            int(part.removesuffix("K")) * (1024 if part.endswith("K") else 1) for part in text.split(",")
        )
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list such as 192K,384K") from None


@dataclass(frozen=True)
class Batch:
    trace: str
    max_length: int
    index: int  # of the full batches of this trace and maximum length
    lengths: tuple[int, ...]

    @property
    def name(self) -> dict[str, Any]:
        return {"trace": self.trace, "max_length": self.max_length, "batch": self.index}


def batches_of(options: argparse.Namespace, world: int) -> list[Batch]:
    """In the order in which they run: maximum lengths and traces in turns."""
    turns: list[list[Batch]] = []
    for trace in options.traces:
        lengths, below = trace_lengths(trace), 0
        for limit in options.max_length:
            full = core().full_batches(lengths, limit, max(options.tokens * world, limit))
            new = [Batch(trace, limit, i, tuple(one)) for i, one in enumerate(full) if max(one) > below]
            turns.append(new[: options.batches])
            below = limit
    return [turn[i] for i in range(options.batches) for turn in turns if i < len(turn)]


class Run:
    """The model, and what it has measured. Lines of a run that ran out of memory come first."""

    def __init__(self, options: argparse.Namespace, began: float) -> None:
        self.options, self.earlier = options, earlier_lines(options.json)
        self.began = self.earlier[0]["started"] if self.earlier else began
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

    @property
    def late(self) -> bool:
        return time.time() - self.began > self.options.seconds

    def steps(self, batches: list[Batch]) -> dict[Batch, nsp.PlannedSteps | str]:
        """The one step of each batch; a sentence: it cannot be planned at all."""
        made: dict[Batch, nsp.PlannedSteps | str] = {}
        for batch in batches:
            data = RandomTokens(batch.lengths, self.options.vocabulary)
            tokens = max(self.options.tokens * self.context.world_size, batch.max_length)
            try:
                made[batch] = nsp.PlannedSteps(data, self.context, tokens)
            except ValueError as error:
                made[batch] = str(error)
        return made

    def plans(self, steps: dict[Batch, nsp.PlannedSteps | str]) -> dict[Batch, dict[str, nsp.Plan | str]]:
        names = [name for name in PLANNERS if name in (*self.options.planners, MINE) and name != SERIAL]
        jobs = [(batch, name) for batch, one in steps.items() if not isinstance(one, str) for name in names]

        def make(job: tuple[Batch, str]) -> nsp.Plan:
            one = steps[job[0]]
            assert not isinstance(one, str)
            return one.plan(0, job[1].replace("N", str(self.context.settings.sp_max)))

        plans: dict[Batch, dict[str, nsp.Plan | str]] = {batch: {} for batch in steps}
        for (batch, name), plan in shared(jobs, make).items():
            plans[batch][name] = plan
        return plans

    def ready(self, steps: nsp.PlannedSteps, plans: dict[str, nsp.Plan | str]) -> dict[str, nsp.Step]:
        """By planner, on the device. Plans that do not fit give way to the sentence."""
        ready: dict[str, nsp.Step] = {}
        for name, plan in plans.items():
            try:
                if isinstance(plan, nsp.Plan):
                    ready[name] = steps.step(0, plan).to(self.device)
            except RuntimeError as error:
                plans[name] = str(error)
        if SERIAL in self.options.planners and MINE in ready:
            ready[SERIAL] = ready[MINE]
        return {name: step for name, step in ready.items() if name not in self.lost}

    def measure(self, batch: Batch, ready: dict[str, nsp.Step]) -> list[dict[str, Any]]:
        facts: dict[str, dict[str, Any]] = {name: {} for name in ready}

        def run(name: str) -> None:
            self.planner, world = name, self.context.world
            world.streaming = name != SERIAL
            if self.device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()
            _, facts[name]["loss"] = train(self.model, self.optimizer, ready[name])
            world.streaming = True
            if self.device.type == "cuda":
                facts[name]["peak_bytes"] = torch.cuda.max_memory_allocated()

        runs = {name: (lambda name=name: run(name)) for name in ready}
        times = paired(runs, self.options.rounds, warm=1, late=lambda: self.late)
        mine = times.get(MINE)
        lines = []
        for name, step in ready.items():
            loss = torch.tensor(facts[name].pop("loss"))
            dist.all_reduce(loss)
            ms = statistics.median(times[name])
            line = {**batch.name, "planner": name, "step_ms": ms}
            line |= {"tokens_per_second": 1e3 * step.plan.num_tokens / ms, "turns": len(times[name])}
            line |= {"over_nsp": median_ratio(times[name], mine) if mine else None}
            line |= self.predicted(step.plan, ms, name != SERIAL)
            lines.append(line | {"loss": float(loss) / self.context.world_size, **facts[name]})
        return lines

    def predicted(self, plan: nsp.Plan, ms: float, overlap: bool) -> dict[str, float]:
        simulated = nsp.simulate(
            plan, model=self.context.settings.model, profile=self.profile, checkpoint="marks",
            overlap=overlap, fsdp=self.context.world_size > 1,
        )  # fmt: skip
        found = {"predicted_ms": 1e3 * plan.predicted.seconds, "simulated_ms": 1e3 * simulated.step_seconds}
        found["simulated_exposed_exchange_ms"] = 1e3 * simulated.mean.exposed_exchange
        return found | {"measured_over_simulated": ms / found["simulated_ms"]}


def earlier_lines(path: str) -> list[dict[str, Any]]:
    """Of the run that torchrun starts again; none in a first one."""
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) == 0 or not path or not Path(path).exists():
        return []
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def summary(lines: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Of the lines of one maximum length: medians over the batches."""
    mine = [line for line in lines if line.get("max_length") == limit and "step_ms" in line]
    names = [name for name in PLANNERS if any(line["planner"] == name for line in mine)]
    found: dict[str, Any] = {"summary": limit, "batches": len({(x["trace"], x["batch"]) for x in mine})}
    for field in ("over_nsp", "tokens_per_second", "measured_over_simulated"):
        values = {name: [x[field] for x in mine if x["planner"] == name and x[field]] for name in names}
        found[field] = {name: statistics.median(value) for name, value in values.items() if value}
    return found


def measure_all(run: Run) -> list[dict[str, Any]]:
    options, lines = run.options, run.lines
    measured = list(run.earlier)
    done = {(x["trace"], x["max_length"], x["batch"]) for x in measured if "step_ms" in x}
    batches = [b for b in batches_of(options, run.context.world_size) if tuple(b.name.values()) not in done]
    steps = run.steps(batches)
    plans = run.plans(steps)
    for batch in batches:
        if any_rank(run.late):
            break
        one = steps[batch]
        if isinstance(one, str):
            lines.write({**batch.name, "why_not": one})
            continue
        ready = run.ready(one, plans[batch])
        facts = {"sequences": len(batch.lengths), "longest": max(batch.lengths), "tokens": sum(batch.lengths)}
        facts |= {"token_budget": one.token_budget, "byte_budget": one.byte_budget}
        lines.write({**batch.name, **facts, "plans": described(plans[batch])})
        run.context.world.begin_step(batch.index)
        for line in run.measure(batch, ready):
            measured.append(line)
            lines.write(line)
    return measured


def main() -> None:
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")  # lengths differ in every batch
    began = time.time()
    run = Run(parse(), began)
    if not run.earlier:
        facts = {"capacity": run.context.capacity, "expert_parallel": 1, "options": vars(run.options)}
        run.lines.write({"started": began, **place(run.context, run.profile), **facts})
    try:
        measured = measure_all(run)
    except torch.OutOfMemoryError as error:  # the others wait for this rank: say it and end
        line = {"planner": run.planner, "rank": dist.get_rank(), "out_of_memory": str(error).splitlines()[0]}
        print(json.dumps(line), flush=True)
        if run.options.json:
            with Path(run.options.json).open("a") as file:
                file.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        os._exit(1)
    for limit in run.options.max_length:
        run.lines.write(summary(measured, limit))
    run.lines.write({"seconds": time.time() - run.began})
    run.context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
