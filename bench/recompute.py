"""A training step with activation checkpointing against what the plan's marks save of attention, in turns.

    torchrun --nproc-per-node 2 bench/recompute.py [--layers 2] [--tokens 131072] [--rounds 5] [--json FILE]

Qwen3-MoE at the widths of 30B-A3B (random weights, small vocabulary), FSDP2, bf16, every layer
checkpointed, forward and backward of one round: a sequence of half a GPU's tokens on all GPUs, the rest of
each GPU's tokens in leaf sequences of at most 8K. Saved, from nothing to all: root to leaf, the long
sequence first, then the leaves, longest first; on the device or, offloaded, in pinned memory of the host. For
each amount: milliseconds of the slowest rank (median), bytes saved of a layer on the device and on the host,
attention launches forward of a step, and peak memory: predicted (docs/memory.md, by kind) and measured. One
JSON line an amount, and one of the host link: bytes a second each way while all ranks copy.
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
from compiled_layers import step
from nsp._native import core
from nsp.peak_report import PeakReport, PeakWatch
from timing import start_ranks
from training import add_sizes, make_model, placements, random_row

import nsp

# What is saved, as `marks` takes it, and where.
AMOUNTS = {
    "nothing": (-1.0, "save"),
    "the long sequence": (0.0, "save"),
    "and a quarter of the leaves": (0.25, "save"),
    "and half the leaves": (0.5, "save"),
    "and three quarters": (0.75, "save"),
    "all": (1.0, "save"),
    "the long sequence, offloaded": (0.0, "offload"),
    "and half the leaves, offloaded": (0.5, "offload"),
    "all, offloaded": (1.0, "offload"),
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_sizes(parser, layers=2, tokens=131072, vocabulary=8192)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", default="")
    return parser.parse_args()


def marks(placed: list[tuple[int, int, int, int]], share: float, mark: str) -> list[str]:
    """share -1: nothing, 0: the long sequence, 1: everything; between: also that part of the leaves. mark: of
    what is saved.
    """
    leaves = sorted((p for p in placed if p[3] == 1), key=lambda p: -p[1])
    limit, taken, saved = share * sum(p[1] for p in leaves), 0, {0} if share >= 0 else set()
    for sequence, length, _, _ in leaves:
        taken += length
        if taken <= limit:
            saved.add(sequence)
    return [mark if sequence in saved else "recompute" for sequence in range(len(placed))]


def host_link(device: torch.device) -> dict | None:
    """Bytes a second to and from pinned host memory, of the slowest rank while all copy; a GiB, best of 3."""
    if device.type != "cuda":
        return None
    on_host = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
    on_device = torch.empty_like(on_host, device=device)
    found = {}
    for name, (to, source) in {"to": (on_host, on_device), "from": (on_device, on_host)}.items():
        seconds = []
        for _ in range(3):
            torch.cuda.synchronize()
            dist.barrier()
            begin = time.perf_counter()
            to.copy_(source, non_blocking=True)
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begin)
        slowest = torch.tensor(min(seconds), device=device)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        found[f"{name}_host_bytes_per_second"] = on_host.nbytes / float(slowest)
    return found


def main() -> None:
    options = parse()
    options.checkpoint = True
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    model = make_model(options, start_ranks(), world)
    context = nsp.init(None, model.config, sp_max=world, optimizer_states=0)
    nsp.attach(model, context)
    placed = placements(world, options.tokens, options.tokens // 2)
    plan = core().make_plan(world, world, world, 0, [placed], "given")
    plans = {name: core().with_marks(plan, [marks(placed, *amount)]) for name, amount in AMOUNTS.items()}
    rows = {name: random_row(context, plan, options.vocabulary) for name, plan in plans.items()}
    times: dict[str, list[float]] = {name: [] for name in rows}
    launches: dict[str, int] = {}
    peak: dict[str, PeakReport | None] = {}
    watch = PeakWatch(context, model)
    for turn in range(options.rounds + 1):
        for name in sorted(rows, reverse=bool(turn % 2)):
            model.zero_grad()
            watch.report()
            seconds = step(model, rows[name])
            launches[name] = context.world.counters()["forward_launches"]
            watch.add(plans[name])
            peak[name] = watch.report()
            if turn > 0:
                times[name].append(seconds)
    link = host_link(context.device)
    lines = [{"host_link": link}] if link is not None else []
    for name, values in times.items():
        ratios = [a / b for a, b in zip(values, times["nothing"], strict=True)]
        schedule = rows[name]["nsp_plan"].schedule
        line = {"saved": name, "saved_bytes_a_layer": schedule.stash_bytes(0, 128, 2)}
        line |= {"offloaded_bytes_a_layer": schedule.offload_bytes(0, 128, 2)}
        line |= {"ms": 1e3 * statistics.median(values)}
        line |= {"over_nothing": statistics.median(ratios), "forward_launches": launches[name]}
        report = peak[name]
        line |= {"peak": report.line() if report is not None else None}
        lines.append(line | {"tokens": options.tokens, "layers": options.layers})
    if rank == 0:
        print("\n".join(json.dumps(line) for line in lines))
        if options.json:
            Path(options.json).write_text("".join(json.dumps(line) + "\n" for line in lines))
    context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
