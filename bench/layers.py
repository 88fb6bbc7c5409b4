"""One attention layer as benchmarks run it: the executor on a plan, or a plan's launches and no exchange."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from nsp._native import execution

import nsp

Launch = tuple[list[int], int]  # lengths, and the degree that parts the heads


def rows(context: nsp.Context, tokens: int, heads: int) -> torch.Tensor:
    """Random (tokens, heads, head_dim): bf16 on GPUs, float32 on CPUs."""
    on_gpu = context.device.type == "cuda"
    head_dim, dtype = context.settings.shape["head_dim"], torch.bfloat16 if on_gpu else torch.float32
    return torch.randn(tokens, heads, head_dim, device=context.device, dtype=dtype)


class Layer:
    """One context's executor on all rounds of a plan, random rows."""

    def __init__(self, context: nsp.Context, plan: bytes) -> None:
        shape = context.settings.shape
        self.scale = shape["head_dim"] ** -0.5
        self.schedule = context.schedule(plan)
        heads, kv_heads = shape["heads"], shape["kv_heads"]
        self.inputs, self.douts = [], []
        for round in range(self.schedule.rounds):
            tokens = self.schedule.tokens(round)
            qkv = [rows(context, tokens, h).requires_grad_() for h in (heads, kv_heads, kv_heads)]
            self.inputs.append(qkv)
            self.douts.append(rows(context, tokens, heads))
        self.outs: list[torch.Tensor] = []

    def forward(self) -> None:
        handle, scale = self.schedule.handle, self.scale
        self.outs = [
            torch.ops.nsp.attention(*qkv, handle, round, scale, 0) for round, qkv in enumerate(self.inputs)
        ]

    def backward(self) -> None:
        for qkv, out, dout in zip(self.inputs, self.outs, self.douts, strict=True):
            torch.autograd.grad(out, qkv, dout, retain_graph=True)


class Alone:
    """The launches of a rank on data that lies ready: nothing is exchanged."""

    def __init__(self, context: nsp.Context, launches: Iterable[Launch]) -> None:
        shape = context.settings.shape
        self.scale = shape["head_dim"] ** -0.5
        self.kernel = _kernel(context.kernel)
        self.launches = []
        for lengths, degree in launches:
            heads, kv_heads = shape["heads"] // degree, max(1, shape["kv_heads"] // degree)
            tensors = [rows(context, sum(lengths), h) for h in (heads, kv_heads, kv_heads, heads)]
            self.launches.append((*tensors, execution().Ragged(lengths)))
        self.kept: list[Any] = []

    def forward(self) -> None:
        self.kept = [self.kernel.forward(q, k, v, s, self.scale, 0) for q, k, v, _, s in self.launches]

    def backward(self) -> None:
        for (q, k, v, dout, s), (out, lse) in zip(self.launches, self.kept, strict=True):
            self.kernel.backward(q, k, v, out, lse, dout, s, self.scale, 0)


def launches(plan: bytes, rank: int) -> list[Launch] | None:
    """What the executor launches on a rank, level by level, waves and first leaves apart. None: a backend
    beside local and ulysses, whose launches mix with its exchanges.
    """
    found: list[Launch] = []
    for round in json.loads(plan)["rounds"]:
        schedule, levels = round["schedule"], {}
        for one in round["placements"]:
            if one["backend"] not in ("local", "ulysses"):
                return None
            if one["first_rank"] <= rank < one["first_rank"] + one["degree"]:
                levels.setdefault(one["degree"], []).append(one["tokens"])
        for degree, lengths in sorted(levels.items(), reverse=True):
            longest_first = sorted(lengths, reverse=True)
            if degree == 1:
                first = schedule["leaf_first"][rank] if schedule.get("leaf_first") else 0
                parts = [longest_first[:first], longest_first[first:]]
            else:
                cut = schedule.get("cuts", {}).get(str(degree), 0)
                parts = [[n for n in longest_first if n > cut], [n for n in longest_first if n <= cut]]
            found += [(part, degree) for part in parts if part]
    return found


@cache
def _kernel(name: str) -> Any:
    """One for all, since it keeps the graphs that it builds."""
    return execution().Kernel(name)
