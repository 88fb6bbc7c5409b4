"""One process of a launch: the executor over peer copies and over NCCL, compared to the last bit.

    torchrun --nproc-per-node N peer_copies_ranks.py parity|delays OUT.json
    RANK=... python peer_copies_ranks.py kill OUT.json

The kernel is flash, whose backward is deterministic when torch is asked for that.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from nested_ranks import HEADS, SCALE, random_cuts, random_plan, shape
from nsp._native import core

import nsp

TRANSPORTS = ("collective", "peer-copy")
Tensors = list[torch.Tensor]


def context(
    transport: str, heads: int, kv_heads: int, sp_max: int, seconds: float = 120, streaming: bool = True
) -> nsp.Context:
    os.environ["NSP_TRANSPORT"] = transport
    made = nsp.init(
        None, shape(heads, kv_heads), sp_max=sp_max, attention="flash", streaming=streaming,
        timeout=timedelta(seconds=seconds),
    )  # fmt: skip
    assert made.world.peer_reach == (sp_max if transport == "peer-copy" else 1)
    return made


def inputs(tokens: int, heads: int, kv_heads: int, seed: int) -> Tensors:
    generator = torch.Generator("cuda").manual_seed(seed)

    def rows(count: int) -> torch.Tensor:
        return torch.randn(tokens, count, 128, generator=generator, device="cuda").to(torch.bfloat16)

    return [*(rows(n).requires_grad_() for n in (heads, kv_heads, kv_heads)), rows(heads)]


def layer(schedule: object, tensors: Tensors, pause: Callable[[], None]) -> Tensors:
    q, k, v, dout = tensors
    pause()
    out = torch.ops.nsp.attention(q, k, v, schedule.handle, 0, SCALE, 0)
    pause()
    return [out.detach(), *torch.autograd.grad(out, (q, k, v), dout)]


def parity(world: int) -> dict:
    """Every forced degree and mixed plans of each head shape, streamed and serial; also that bytes moved."""
    generator, cases, wrong, moved = random.Random(3), 0, [], 0
    for heads, kv_heads in HEADS:
        allowed = [d for d in (1, 2, 4, 8) if d <= world and heads % d == 0]
        contexts = {t: context(t, heads, kv_heads, max(allowed)) for t in TRANSPORTS}
        contexts |= {
            f"{t}, serial": context(t, heads, kv_heads, max(allowed), streaming=False) for t in TRANSPORTS
        }
        for chosen in [[d] for d in allowed] + [allowed] * 6:
            plan = random_plan(world, chosen, generator)
            found = {}
            for transport, made in contexts.items():
                schedule = made.schedule(plan)
                tensors = inputs(schedule.tokens(0), heads, kv_heads, 100 * cases + made.rank)
                found[transport] = layer(schedule, tensors, lambda: None)
            cases += 1
            first = found["collective"]
            pairs = [pair for other in found.values() for pair in zip(first, other, strict=True)]
            if not all(torch.equal(a, b) for a, b in pairs):
                wrong.append([heads, kv_heads, chosen])
        moved += contexts["peer-copy"].world.counters()["bytes"]
        for made in contexts.values():
            made.close()
    return {"cases": cases, "wrong": wrong, "bytes": moved}


def short_plan(world: int, generator: random.Random) -> bytes:
    """Up to 40 sequences, sometimes far more than a batch of copies takes singly."""
    placements = []
    for sequence in range(generator.choice([1, 3, 8, 40])):
        degree = generator.choice([d for d in (1, 2, 4, 8) if d <= world])
        first = generator.randrange(world // degree) * degree
        placements.append((sequence, int(2 ** generator.uniform(0, 12)), first, degree))
    cuts = random_cuts(placements, generator)
    return core().make_plan(world, world, world, 0, [placements], "given", cuts=[cuts])


def delays(world: int, rank: int) -> dict:
    """Random plans, layers in a row without a wait of the host, each with other values, ranks late by up to
    4 ms before any pass.
    """
    heads, kv_heads = 8, 2
    contexts = {t: context(t, heads, kv_heads, world) for t in TRANSPORTS}
    plans, late, wrong = random.Random(5), random.Random(rank), 0

    def pause() -> None:
        if late.random() < 0.5:
            torch.cuda._sleep(int(late.uniform(0, 8e6)))

    count = int(os.environ.get("NSP_PLANS", "300"))
    for index in range(count):
        plan = short_plan(world, plans)
        found = {}
        for transport, made in contexts.items():
            schedule = made.schedule(plan)
            waits = pause if transport == "peer-copy" else (lambda: None)
            found[transport] = [
                layer(schedule, inputs(schedule.tokens(0), heads, kv_heads, 10 * index + n), waits)
                for n in range(3)
            ]
        for one, other in zip(*found.values(), strict=True):
            wrong += not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    arena = contexts["peer-copy"].world.arena_bytes
    for made in contexts.values():
        made.close()
    return {"layers": 3 * count, "wrong": wrong, "arena_bytes": arena}


def kill(world: int, rank: int) -> dict:
    """Rank 1 dies with its exchanges issued and not begun."""
    made = context("peer-copy", 8, 2, world, seconds=10)
    schedule = made.schedule(core().make_plan(world, world, world, 0, [[(0, 4096, 0, world)]], "given"))
    tensors = inputs(schedule.tokens(0), 8, 2, rank)
    layer(schedule, tensors, lambda: None)
    torch.cuda.synchronize()
    if rank == 1:
        torch.cuda._sleep(20_000_000_000)
        layer(schedule, tensors, lambda: None)
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    layer(schedule, tensors, lambda: None)
    torch.cuda.synchronize()
    raise AssertionError("rank 1 did not die")


def main(mode: str, out: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("cpu:gloo,cuda:nccl")
    found = parity(world) if mode == "parity" else (delays if mode == "delays" else kill)(world, rank)
    everywhere: list = [None] * world
    dist.all_gather_object(everywhere, found)
    if rank == 0:
        Path(out).write_text(json.dumps(everywhere))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
