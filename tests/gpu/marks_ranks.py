"""One process of a launch: marked plans in a checkpointed region, against the plan without marks, bitwise.

    torchrun --nproc-per-node N marks_ranks.py OUT.json

The kernel is flash, whose backward is deterministic when torch is asked for that. Marks move rows, so inputs
and results are compared by sequence, not by row.
"""

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from nested_ranks import HEADS, SCALE, random_plan
from nsp._native import core
from peer_copies_ranks import TRANSPORTS, context, inputs
from torch.utils.checkpoint import checkpoint

import nsp

# By the place among a round's sequences, dearest first.
BUDGETS: dict[str, Callable[[int, int], str]] = {
    "0": lambda i, n: "recompute",
    "tiny": lambda i, n: "save" if i == 0 else "recompute",
    "half": lambda i, n: "save" if i < n // 2 else "recompute",
    "every other": lambda i, n: "save" if i % 2 else "recompute",
    "unlimited": lambda i, n: "save",
    "all three": lambda i, n: ("save", "recompute", "save_qkv")[i % 3],
}


def marked(plan: bytes, choose: Callable[[int, int], str]) -> bytes:
    placements = json.loads(plan)["rounds"][0]["placements"]
    dearest = sorted(placements, key=lambda p: (-p["tokens"], p["sequence"]))
    chosen = {p["sequence"]: choose(i, len(dearest)) for i, p in enumerate(dearest)}
    result: bytes = core().with_marks(plan, [[chosen[p["sequence"]] for p in placements]])
    return result


def own_rows(plan: bytes, rank: int) -> torch.Tensor:
    """Where the rank's rows lie when the round's sequences stand one behind the other; int64 [tokens]."""
    begins, total = {}, 0
    for placement in sorted(json.loads(plan)["rounds"][0]["placements"], key=lambda p: p["sequence"]):
        begins[placement["sequence"]], total = total, total + placement["tokens"]
    rows = [begins[s] + torch.arange(begin, end) for s, begin, end in core().rank_row(plan, 0, rank)]
    return torch.cat([torch.empty(0, dtype=torch.int64), *rows]).cuda()


def run(made: nsp.Context, plan: bytes, seed: int, heads: int, kv_heads: int) -> tuple[list[Any], int, int]:
    """out, dq, dk, dv of all ranks by sequence; forward launches of backward's second pass; stash bytes."""
    schedule = made.schedule(plan)
    total = sum(p["tokens"] for p in json.loads(plan)["rounds"][0]["placements"])
    everything, own = inputs(total, heads, kv_heads, seed), own_rows(plan, made.rank)
    q, k, v, dout = (tensor.detach()[own].requires_grad_() for tensor in everything)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.ops.nsp.attention(q, k, v, schedule.handle, 0, SCALE, 0)

    out = checkpoint(attend, q, k, v, use_reentrant=False, context_fn=nsp.checkpoint_contexts)
    held = made.world.counters()["stash_bytes"]
    made.world.reset_counters()
    gradients = torch.autograd.grad(out, (q, k, v), dout)
    counters = made.world.counters()
    assert counters["stash_bytes"] == 0, counters
    results = [torch.zeros_like(tensor) for tensor in (everything[3], *everything[:3])]
    for result, part in zip(results, (out.detach(), *gradients), strict=True):
        result[own] = part
        dist.all_reduce(result)
    return results, counters["forward_launches"], held


def main(out: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("cpu:gloo,cuda:nccl")
    generator = random.Random(11)
    found: dict[str, Any] = {"cases": 0, "wrong": [], "launches": {}, "held": {}}
    for heads, kv_heads in HEADS[:2]:
        degrees = [d for d in (1, 2, 4) if d <= world and heads % d == 0]
        for transport in TRANSPORTS if world > 1 else ("collective",):
            made = context(transport, heads, kv_heads, max(degrees))
            for seed in range(3):
                plan = random_plan(world, degrees, generator)
                expected, _, _ = run(made, plan, seed, heads, kv_heads)
                for budget, choose in BUDGETS.items():
                    results, launches, held = run(made, marked(plan, choose), seed, heads, kv_heads)
                    found["cases"] += 1
                    found["launches"].setdefault(budget, []).append(launches)
                    found["held"].setdefault(budget, []).append(held)
                    if not all(torch.equal(a, b) for a, b in zip(results, expected, strict=True)):
                        found["wrong"].append([heads, kv_heads, transport, seed, budget])
            made.close()
    everyone: list[Any] = [None] * world
    dist.all_gather_object(everyone, found)
    if rank == 0:
        Path(out).write_text(json.dumps(everyone))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
