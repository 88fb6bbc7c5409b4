"""Training steps under every planner's plans of the same batches, on the GPUs of a host.

How to run (make finds the GPUs, installs first where needed, and writes OUT/train.jsonl):

    make bench-train OUT=results                                    # all GPUs of this host
    make bench-train GPUS=2 OUT=results ARGS="--max-length 192K --batches 3"
    torchrun --nproc-per-node 8 bench/train.py --json results/train.jsonl
    NCCL_P2P_DISABLE=1 make bench-train ARGS="--inside 23"          # through host memory; plans cost it so
    make bench-train ARGS="--hosts 2 --between 3"                   # NCCL_HOSTID parts the host into two

The host's topology: NCCL_P2P_DISABLE and NCCL_HOSTID end peer copies where they end NCCL's (the line
"transport" says what is left), but plans are made for the links of --profile: give --inside or --between.
NCCL_HOSTID alone leaves plans for one host; --hosts sets it on every rank, and ranks_per_host with it.

Qwen3-MoE at the widths of 30B-A3B (random weights and tokens, few layers, small vocabulary), FSDP2, bf16,
every layer checkpointed and on GPUs compiled, clipping, AdamW at learning rate 0: every planner meets the
same weights, and its loss is the same but for rounding. Batches are consecutive sequences of the traces up to
the maximum length, --tokens a GPU, or as many as the longest may have; of a second maximum length the first
batches that hold a sequence longer than the first allows. Token and byte budget are `auto`, one for all.
Plans are made before anything is timed. Planners run in turns on a batch, after a turn that is not counted;
those with the same plan run once. "nsp serial" is nsp's plan with every exchange beside nothing. Expert
parallelism is 1: the trainer has none (plans alone know it, `nsp.plan(ep=)`).

Lines: for each batch and planner the median step ms of the slowest rank, tokens/s, the median paired ratio
over nsp, loss, peak memory of rank 0, and what was predicted: the plan's own seconds (no overlap, no
recompute) and the simulated step. Last, summaries by maximum length. A plan that does not fit says so and is
not run. If memory runs out all the same, a line names the planner and the ranks end; --again (make adds it)
goes on with FILE: batches that are done stay, and that planner is left out. --seconds go on, too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from batches import TRACES, long_batches
from lines import place, some_of
from timing import any_rank
from train_run import PLANNERS, Run, measure, one_step, planned, ready_steps
from variants import described


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
    add("--again", action="store_true", help="go on with FILE after memory ran out")
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


def measure_all(run: Run) -> list[dict[str, Any]]:
    """All lines, the earlier ones first."""
    options, measured = run.options, list(run.earlier)
    done = {(x["trace"], x["max_length"], x["batch"]) for x in measured if "step_ms" in x}
    tokens = options.tokens * run.context.world_size
    batches = long_batches(options.traces, options.max_length, tokens, options.batches)
    steps = {batch: one_step(run, batch) for batch in batches if batch.key not in done}
    plans = planned(run, steps)
    for batch, one in steps.items():
        if any_rank(run.late()):
            break
        if isinstance(one, str):
            run.lines.write({**batch.name, "why_not": one})
            continue
        ready = ready_steps(run, one, plans[batch])
        facts = {"sequences": len(batch.lengths), "longest": max(batch.lengths), "tokens": sum(batch.lengths)}
        facts |= {"token_budget": one.token_budget, "byte_budget": one.byte_budget}
        run.lines.write({**batch.name, **facts, "plans": described(plans[batch])})
        run.context.world.begin_step(batch.index)
        for line in measure(run, batch, ready):
            measured.append(line)
            run.lines.write(line)
    return measured


def summary(lines: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Of the lines of one maximum length: medians over the batches."""
    mine = [line for line in lines if line.get("max_length") == limit and "step_ms" in line]
    found: dict[str, Any] = {"summary": limit, "batches": len({(x["trace"], x["batch"]) for x in mine})}
    for field in ("over_nsp", "tokens_per_second", "measured_over_simulated"):
        values = {name: [x[field] for x in mine if x["planner"] == name and field in x] for name in PLANNERS}
        found[field] = {name: statistics.median(value) for name, value in values.items() if value}
    return found


def end_without_memory(run: Run, error: torch.OutOfMemoryError) -> NoReturn:
    """The others wait for this rank: it says what it wanted and ends, and torchrun ends them."""
    line = {"planner": run.planner, "rank": dist.get_rank(), "out_of_memory": str(error).splitlines()[0]}
    print(json.dumps(line), flush=True)
    if run.options.json:
        with Path(run.options.json).open("a") as file:
            file.write(json.dumps(line) + "\n")
    os._exit(1)


def main() -> None:
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")  # lengths differ in every batch
    run = Run(parse())
    if not run.earlier:
        facts = {"capacity": run.context.capacity, "expert_parallel": 1, "options": vars(run.options)}
        run.lines.write({"started": run.began, **place(run.context, run.profile), **facts})
    try:
        measured = measure_all(run)
    except torch.OutOfMemoryError as error:
        end_without_memory(run, error)
    for limit in run.options.max_length:
        run.lines.write(summary(measured, limit))
    run.lines.write({"seconds": time.time() - run.began})
    run.context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
