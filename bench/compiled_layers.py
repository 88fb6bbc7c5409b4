"""A training step of compiled decoder layers against eager ones, in turns on the same weights.

    torchrun --nproc-per-node 2 bench/compiled_layers.py [--layers 4] [--tokens 16384] [--checkpoint]

Qwen3-MoE at the widths of 30B-A3B (random weights, small vocabulary), FSDP2, bf16; forward and backward of a
planned round, no optimizer: half of a rank's tokens in sequences over all ranks, half in leaf sequences,
other lengths in every round. Both kinds run in turns, host clock around a synchronised step; the slowest rank
counts; medians. The first two rounds (compiling) are reported apart. One JSON line; --json FILE keeps it.
"""

import argparse
import json
import os
import random
import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
from nsp._native import core
from nsp.row_plan import RowPlan
from nsp.sharding import decoder_layers
from timing import start_ranks
from torch._dynamo.utils import counters
from training import add_sizes, make_model

import nsp


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_sizes(parser, layers=4, tokens=16384, vocabulary=32768)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--checkpoint", action="store_true", help="activation checkpointing of each layer")
    parser.add_argument("--json", default="")
    return parser.parse_args()


def row(context: nsp.Context, options: argparse.Namespace, turn: int) -> dict:
    """This rank's inputs of a round whose lengths depend on the turn."""
    world, dice = context.world_size, random.Random(turn)
    placements: list[tuple[int, int, int, int]] = []
    nodes = [(rank, 1) for rank in range(world)] + [(0, world)]
    for first, degree in nodes:
        left = degree * (options.tokens // 2 - dice.randrange(options.tokens // 32))
        while left > 0:
            length = min(left, max(1, dice.randrange(left // 8, left + 1)))
            placements.append((len(placements), length, first, degree))
            left -= length
    plan = core().make_plan(world, world, world, 0, [placements], "given")
    segments = core().rank_row(plan, 0, context.rank)
    positions = torch.cat([torch.arange(begin, end) for _, begin, end in segments])
    ids = torch.randint(options.vocabulary, positions.shape, generator=torch.Generator().manual_seed(turn))
    tensors = {"input_ids": ids, "position_ids": positions, "labels": ids, "shift_labels": ids}
    inputs = {name: value[None].to(context.device) for name, value in tensors.items()}
    targets = world * options.tokens
    return inputs | {"nsp_plan": RowPlan(context, context.schedule(plan), 0, targets), "use_cache": False}


class Switch:
    """Compiled layers of one model, or the same layers eagerly."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        nsp.compile_layers(model)
        self.compiled = [(layer, layer.forward) for layer in decoder_layers(model)]

    def to(self, kind: str) -> None:
        for layer, forward in self.compiled:
            vars(layer).pop("forward", None)
            if kind == "compiled":
                layer.forward = forward


def step(model: torch.nn.Module, inputs: dict) -> float:
    """Seconds of forward and backward; the slowest rank's."""
    cuda = inputs["input_ids"].is_cuda
    wait = torch.cuda.synchronize if cuda else (lambda: None)
    model.zero_grad(set_to_none=False)
    wait()
    dist.barrier()
    begin = time.perf_counter()
    model(**inputs).loss.backward()
    wait()
    slowest = torch.tensor(time.perf_counter() - begin, device=inputs["input_ids"].device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return float(slowest)


def main() -> None:
    options = parse()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = start_ranks()
    cuda = device.type == "cuda"
    model = make_model(options, device, world)
    context = nsp.init(None, model.config, sp_max=world)
    nsp.attach(model, context)
    switch = Switch(model)
    first: dict[str, list[float]] = {"eager": [], "compiled": []}
    times: dict[str, list[float]] = {"eager": [], "compiled": []}
    kept: dict[str, int] = {}
    for turn in range(options.rounds + 2):
        inputs = row(context, options, turn)
        for kind in sorted(times, reverse=bool(turn % 2)):
            switch.to(kind)
            if cuda:
                torch.cuda.reset_peak_memory_stats()
            (first if turn < 2 else times)[kind].append(step(model, inputs))
            kept[kind] = torch.cuda.max_memory_allocated() if cuda else 0
    ratios = [e / c for e, c in zip(times["eager"], times["compiled"], strict=True)]
    line = {name: getattr(options, name) for name in ("layers", "tokens", "hidden", "experts", "checkpoint")}
    line |= {"ranks": world, "device": torch.cuda.get_device_name() if cuda else "cpu"}
    line |= {f"{kind}_ms": 1e3 * statistics.median(values) for kind, values in times.items()}
    line |= {"eager_over_compiled": statistics.median(ratios), "first_steps_s": first, "peak_bytes": kept}
    line |= {"graphs": counters["stats"]["unique_graphs"], "kernel": context.kernel}
    if rank == 0:
        print(json.dumps(line))
        if options.json:
            Path(options.json).write_text(json.dumps(line) + "\n")
    context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
