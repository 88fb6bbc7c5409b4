"""One process of a launch: nested attention of random plans on GPUs, errors next to FlashAttention-2's.

    torchrun --nproc-per-node N nested_ranks.py BACKEND OUT.json

BACKEND nccl: one rank a GPU. gloo: any number of ranks a GPU, rows staged through the host.
"""

import json
import os
import random
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from nsp._native import core, execution
from reference import attention

import nsp

HEADS = [(32, 4), (8, 1), (28, 4)]
LENGTHS = [2500, 1000, 333, 129, 33, 7, 1, 1]
SCALE = 128**-0.5
WINDOWS = [0, 100]  # 0: whole sequences


def shape(heads: int, kv_heads: int) -> dict:
    return {
        "name": "probe", "layers": 1, "hidden": 256, "heads": heads, "kv_heads": kv_heads, "head_dim": 128,
        "experts": 0, "top_k": 0, "intermediate": 512, "vocabulary": 256, "bytes_per_value": 2,
    }  # fmt: skip


def random_cuts(
    placements: list[tuple[int, int, int, int]], generator: random.Random
) -> list[tuple[int, int]]:
    """(degree, tokens) for half of the levels above 1 that have sequences of more than one length."""
    cuts = []
    for degree in sorted({p[3] for p in placements} - {1}):
        lengths = sorted({p[1] for p in placements if p[3] == degree})
        if len(lengths) > 1 and generator.random() < 0.5:
            cuts.append((degree, generator.choice(lengths[:-1])))
    return cuts


def random_plan(world: int, degrees: list[int], generator: random.Random) -> bytes:
    placements = []
    for sequence, tokens in enumerate(LENGTHS):
        degree = generator.choice(degrees)
        placements.append((sequence, tokens, generator.randrange(world // degree) * degree, degree))
    cuts = random_cuts(placements, generator)
    return core().make_plan(world, max(degrees), world, 0, [placements], "given", cuts=[cuts])


class Problem:
    """One batch of whole sequences, its float32 solution and FlashAttention-2's."""

    def __init__(self, heads: int, kv_heads: int, kernel: object, window: int) -> None:
        self.window = window
        generator = torch.Generator().manual_seed(1)

        def rows(count: int) -> torch.Tensor:
            return torch.randn(sum(LENGTHS), count, 128, generator=generator).to("cuda", torch.bfloat16)

        self.whole = [rows(heads), rows(kv_heads), rows(kv_heads), rows(heads)]
        self.expected = attention(*self.whole, LENGTHS, SCALE, window)
        sequences = execution().Ragged(LENGTHS)
        out, lse = kernel.forward(*self.whole[:3], sequences, SCALE, window)
        grads = kernel.backward(*self.whole[:3], out, lse, self.whole[3], sequences, SCALE, window)
        self.flash = (out, *grads)

    def errors(self, context: nsp.Context, plan: bytes) -> torch.Tensor:
        """(4, 2): of out, dq, dk, dv, the squared error of this rank's rows, ours and FlashAttention-2's."""
        starts = [sum(LENGTHS[:i]) for i in range(len(LENGTHS))]
        row = [r for r in core().rank_row(plan, 0, context.rank) if r[0] >= 0]  # without the dummy token
        mine = [slice(starts[s] + b, starts[s] + e) for s, b, e in row]
        q, k, v, dout = (
            torch.cat([x[part] for part in mine] or [x[:1]]).requires_grad_() for x in self.whole
        )
        schedule = context.schedule(plan)
        out = torch.ops.nsp.attention(q, k, v, schedule.handle, 0, SCALE, self.window)
        found = (out.detach(), *torch.autograd.grad(out, (q, k, v), dout))
        errors = torch.zeros(4, 2, dtype=torch.float64)
        if mine:
            for i, (value, other, reference) in enumerate(zip(found, self.flash, self.expected, strict=True)):
                parts = torch.cat([reference[part] for part in mine])
                theirs = torch.cat([other[part] for part in mine])
                errors[i, 0] = (value.float() - parts).square().sum()
                errors[i, 1] = (theirs.float() - parts).square().sum()
        return errors


def main(backend: str, out: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("cpu:gloo,cuda:nccl" if backend == "nccl" else "cpu:gloo,cuda:gloo")
    torch.zeros(1, device="cuda")  # the mesh leaves a device that is in use alone
    mesh = dist.device_mesh.init_device_mesh("cuda", (world,))
    degrees = [d for d in (1, 2, 4, 8) if d <= world]
    generator = random.Random(0)
    flash = execution().Kernel("flash")
    results = []
    for heads, kv_heads in HEADS:
        allowed = [d for d in degrees if heads % d == 0]
        context = nsp.init(mesh, shape(heads, kv_heads), sp_max=max(allowed))
        for window in WINDOWS:
            problem = Problem(heads, kv_heads, flash, window)
            for chosen in [[d] for d in allowed] + [allowed] * 3:
                errors = problem.errors(context, random_plan(world, chosen, generator))
                dist.all_reduce(errors)
                ratios = (errors[:, 0] / errors[:, 1]).sqrt().tolist()
                named = dict(zip(("out", "dq", "dk", "dv"), ratios, strict=True))
                case = {"heads": heads, "kv_heads": kv_heads, "window": window, "degrees": chosen}
                results.append({**case, "over_flash": named})
        kernel = context.kernel
        context.close()
    if rank == 0:
        with Path(out).open("w") as file:
            json.dump({"kernel": kernel, "results": results}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
