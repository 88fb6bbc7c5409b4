"""One sequence over all ranks by each backend that may run it: milliseconds, forward and backward.

    torchrun --nproc-per-node 2 bench/backends.py [--rounds 21] [--tokens 4096,16384,65536] [--hosts 1]

One JSON line a length: for each (backend, inner size) the median, lowest and highest milliseconds of the
slowest rank over the rounds, in turns, and the bytes and exchanges of a forward and backward pass. --hosts 2
lets usp run between halves of the ranks. Transport: what NCCL is told by its environment variables.
"""

from __future__ import annotations

import argparse
import json
import statistics

import torch.distributed as dist
from attention_layer import shape
from layers import Layer
from nsp._native import core
from timing import paired, start_ranks

import nsp

Way = tuple[int, str, int]


class OneWay(Layer):
    """Attention of one sequence by one way."""

    def __init__(self, context: nsp.Context, tokens: int, way: Way) -> None:
        world, (degree, backend, inner) = context.world_size, way
        placements = [(0, tokens, 0, degree, backend, inner)]
        plan = core().make_plan(world, world, context.settings.ranks_per_host, 0, [placements], "given")
        super().__init__(context, plan)


def summary(times: list[float]) -> dict[str, float]:
    return {"ms": statistics.median(times), "lowest": min(times), "highest": max(times)}


def measure(context: nsp.Context, tokens: int, rounds: int) -> dict:
    ways = [way for way in context.settings.ways if way[0] == context.world_size]
    layers = {
        f"{backend} {inner}": OneWay(context, tokens, (d, backend, inner)) for d, backend, inner in ways
    }
    found: dict = {"tokens": tokens, "world": context.world_size}
    for name, layer in layers.items():
        context.world.reset_counters()
        layer.forward()
        layer.backward()
        counters = context.world.counters()
        found[name] = {"bytes": counters["bytes"], "exchanges": counters["exchanges"]}
    for direction in ("forward", "backward"):
        runs = {name: getattr(layer, direction) for name, layer in layers.items()}
        for name, times in paired(runs, rounds).items():
            found[name][direction] = summary(times)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--tokens", default="4096,16384,65536")
    parser.add_argument("--hosts", type=int, default=1)
    args = parser.parse_args()
    start_ranks()
    world = dist.get_world_size()
    context = nsp.init(None, shape(), sp_max=world, backends=("all",), ranks_per_host=world // args.hosts)
    for tokens in map(int, args.tokens.split(",")):
        found = measure(context, tokens, args.rounds)
        if dist.get_rank() == 0:
            print(json.dumps({"kernel": context.kernel, **found}), flush=True)
    context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
