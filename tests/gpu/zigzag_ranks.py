"""One process of a launch: gather, ring and usp on GPUs, errors next to FlashAttention-2's.

    torchrun --nproc-per-node N zigzag_ranks.py BACKEND OUT.json

BACKEND nccl: one rank a GPU. gloo: any number of ranks a GPU, rows staged through the host.
"""

import json
import os
import random
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from nested_ranks import LENGTHS, Problem, shape
from nsp._native import core, execution

import nsp

HEADS = [(32, 4), (8, 1), (28, 4), (7, 7)]
Way = tuple[int, str, int]


def made(world: int, hosts: int, ways: list[Way], generator: random.Random) -> bytes:
    """Every sequence by one of the ways, somewhere."""
    placements = []
    for sequence, tokens in enumerate(LENGTHS):
        degree, backend, inner = generator.choice(ways)
        first = generator.randrange(world // degree) * degree
        placements.append((sequence, tokens, first, degree, backend, inner))
    return core().make_plan(world, world, world // hosts, 0, [placements], "given")


def cases(ways: list[Way]) -> dict[str, list[Way]]:
    """Each way alone, all of the root's level, and three times any of all."""
    root = max(degree for degree, _, _ in ways)
    found = {
        f"{backend} at {degree}, inner {inner}": [(degree, backend, inner)] for degree, backend, inner in ways
    }
    found["all at the root"] = [way for way in ways if way[0] == root]
    return found | {f"mixed {i}": ways for i in range(3)}


def main(backend: str, out: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("cpu:gloo,cuda:nccl" if backend == "nccl" else "cpu:gloo,cuda:gloo")
    torch.zeros(1, device="cuda")  # the mesh leaves a device that is in use alone
    mesh = dist.device_mesh.init_device_mesh("cuda", (world,))
    hosts = 2 if world > 1 else 1  # usp runs between hosts
    generator = random.Random(0)
    flash = execution().Kernel("flash")
    results = []
    for heads, kv_heads in HEADS:
        context = nsp.init(
            mesh, shape(heads, kv_heads), sp_max=world, backends=("all",), ranks_per_host=world // hosts
        )
        problem = Problem(heads, kv_heads, flash, 0)
        for name, chosen in cases(context.settings.ways).items():
            errors = problem.errors(context, made(world, hosts, chosen, generator))
            dist.all_reduce(errors)
            ratios = (errors[:, 0] / errors[:, 1]).sqrt().tolist()
            named = dict(zip(("out", "dq", "dk", "dv"), ratios, strict=True))
            results.append({"heads": heads, "kv_heads": kv_heads, "ways": name, "over_flash": named})
        kernel = context.kernel
        context.close()
    if rank == 0:
        with Path(out).open("w") as file:
            json.dump({"kernel": kernel, "results": results}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
