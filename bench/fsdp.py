"""FSDP2 beside the executor: what sharding adds to a step whose attention exchanges rows, and to one without.

    torchrun --nproc-per-node 2 bench/fsdp.py [--layers 4] [--tokens 32768] [--rounds 9] [--json FILE]

Qwen3-MoE at the widths of 30B-A3B (random weights, small vocabulary), bf16, forward and backward of one
round, no optimizer. *nested*: half of a GPU's tokens in one sequence over all of them, the rest in leaf
sequences; *leaves*: all in leaf sequences, so that attention exchanges nothing. Each with the model under
FSDP2 and with a whole copy on every GPU, in turns; the slowest rank counts. What FSDP2 adds is the median of
the paired differences: gathers, reductions and copies that nothing hides. One JSON line.
"""

import argparse
import json
import statistics
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from nsp._native import core
from timing import paired, start_ranks
from training import add_sizes, bare_model, make_model, placements, random_row

import nsp


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_sizes(parser, layers=4, tokens=32768, vocabulary=8192)
    parser.add_argument("--checkpoint", action="store_true", help="activation checkpointing of each layer")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=torch.cuda.is_available())
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", default="")
    return parser.parse_args()


def step(model: torch.nn.Module, row: dict) -> None:
    model.zero_grad()
    model(**row).loss.backward()


def main() -> None:
    options = parse()
    device = start_ranks()
    world = dist.get_world_size()
    models = {"whole": bare_model(options, device).to(torch.bfloat16)}
    models["fsdp"] = make_model(options, device, world)
    context = nsp.init(None, models["whole"].config, sp_max=world)
    for model in models.values():
        nsp.attach(model, context)
        if options.compile:
            nsp.compile_layers(model)
    runs = {}
    for name, long in (("nested", options.tokens // 2 * world), ("leaves", 0)):
        placed = placements(world, options.tokens, long)
        plan = core().make_plan(world, world, world, 0, [placed], "given")
        row = random_row(context, plan, options.vocabulary)
        runs |= {f"{name}, {kind}": partial(step, model, row) for kind, model in models.items()}
    times = paired(runs, options.rounds)
    line: dict = {"gpus": world, "tokens": options.tokens, "layers": options.layers}
    line["ms"] = {name: statistics.median(values) for name, values in times.items()}
    for name in ("nested", "leaves"):
        pairs = zip(times[f"{name}, fsdp"], times[f"{name}, whole"], strict=True)
        added = [a - b for a, b in pairs]
        line[f"fsdp_adds_ms_{name}"] = [statistics.median(added), min(added), max(added)]
    if dist.get_rank() == 0:
        print(json.dumps(line))
        if options.json:
            Path(options.json).write_text(json.dumps(line) + "\n")
    context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
