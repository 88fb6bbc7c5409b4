"""One layer's attention over batches of the traces: exchanges beside attention against one after the other.

    torchrun --nproc-per-node 2 bench/streaming.py [--batches 20] [--tokens 32768] [--rounds 9]
        [--transports peer-copy,collective] [--planner nsp]

A batch: --tokens a GPU, from one trace after the other, sequences cut off at --tokens, planned by --planner
for these GPUs; plans that exchange nothing are passed over. Streaming is the plan's issue order, serial
(nsp.init(streaming=False)) the same launches with every exchange beside nothing. In turns, the slowest rank
counts. One JSON line a batch: medians in ms, and of the paired ratio streaming / serial; then a summary.
"""

import argparse
import json
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import torch.distributed as dist
from attention_layer import shape
from layers import Layer
from nsp._native import core
from timing import paired, start_ranks

import nsp

TRACES = ("flexsp_common_crawl_head.txt", "flexsp_github_head.txt", "flexsp_wikipedia.txt.gz")


def planned(count: int, tokens: int, world: int, planner: str) -> Iterator[tuple[str, list[int], bytes]]:
    """(trace, lengths, plan) of the first batches whose plans exchange something."""
    folder = Path(__file__).parent.parent / "tests/data/traces"
    turns = []
    for trace in TRACES:
        lengths = [min(n, tokens) for n in core().load_lengths(str(folder / trace))]
        full = core().full_batches(lengths, tokens, tokens * world)
        turns.append([(trace.split(".")[0], list(batch)) for batch in full])
    found = 0
    for trace, lengths in (batch for turn in zip(*turns, strict=False) for batch in turn):
        plan = nsp.plan(lengths, world=world, sp_max=world, model="qwen3-30b-a3b", planner=planner)
        if found < count and any(p.degree > 1 for placements in plan.rounds for p in placements):
            found += 1
            yield trace, lengths, plan.to_json()


def contexts(transports: list[str], world: int) -> dict[str, dict[str, nsp.Context]]:
    made: dict[str, dict[str, nsp.Context]] = {}
    for transport in transports:
        os.environ["NSP_TRANSPORT"] = transport
        made[transport] = {
            name: nsp.init(None, shape(), sp_max=world, streaming=name == "streaming")
            for name in ("streaming", "serial")
        }
    return made


def measure(pair: dict[str, nsp.Context], plan: bytes, rounds: int) -> dict:
    layers = {name: Layer(context, plan) for name, context in pair.items()}
    for layer in layers.values():
        layer.forward()
        layer.backward()
    found = {}
    for direction in ("forward", "backward"):
        times = paired({name: getattr(layer, direction) for name, layer in layers.items()}, rounds)
        found[direction] = {name: statistics.median(values) for name, values in times.items()}
        found[direction]["ratio"] = statistics.median(
            a / b for a, b in zip(times["streaming"], times["serial"], strict=True)
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--transports", default="peer-copy,collective")
    parser.add_argument("--planner", default="nsp")
    args = parser.parse_args()
    start_ranks()
    world = dist.get_world_size()
    made = contexts(args.transports.split(","), world)
    ratios: dict[str, list[float]] = {}
    for trace, lengths, plan in planned(args.batches, args.tokens, world, args.planner):
        for transport, pair in made.items():
            found = measure(pair, plan, args.rounds)
            for direction in ("forward", "backward"):
                ratios.setdefault(f"{transport} {direction}", []).append(found[direction]["ratio"])
            if dist.get_rank() == 0:
                line = {
                    "trace": trace,
                    "transport": transport,
                    "sequences": len(lengths),
                    "longest": max(lengths),
                }
                order = json.loads(plan)["rounds"][0]["schedule"]["order"]
                print(json.dumps(line | {"order": order} | found), flush=True)
    if dist.get_rank() == 0:
        for name, values in ratios.items():
            print(
                json.dumps(
                    {"streaming / serial": name, "median": statistics.median(values), "most": max(values)}
                )
            )
    for pair in made.values():
        for context in pair.values():
            context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
