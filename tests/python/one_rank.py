"""What PlannedSteps and the loader see of one rank: no process group."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from nsp.agreement import Agreement
from nsp.settings import Settings, make_settings

import nsp

SHAPE = {
    "name": "test",
    "layers": 2,
    "hidden": 32,
    "heads": 8,
    "kv_heads": 2,
    "head_dim": 8,
    "experts": 0,
    "top_k": 0,
    "intermediate": 64,
    "vocabulary": 61,
    "bytes_per_value": 4,
}


def settings(world: int, **changes: Any) -> Settings:
    """sp_max 2, or 1 in a world of one."""
    return make_settings(world, SHAPE, "cpu", sp_max=min(2, world), **changes)


class Executed:
    """A compiled schedule that a model has run."""

    attention_calls = 1
    handle = 0

    def saves(self, round: int) -> bool:
        return False


class World:
    def begin_step(self, step: int) -> None:
        """Nobody watches."""


class Rank:
    """A context with an attached model that reads, and agrees with itself."""

    attached, device, world, capacity = True, torch.device("cpu"), World(), None
    checkpointing = False

    def __init__(self, rank: int, settings: Settings) -> None:
        self.rank, self.settings, self.world_size = rank, settings, settings.world

    def schedule(self, plan: nsp.Plan) -> Any:
        return Executed()

    def agreement(self, what: str, remedy: str) -> Agreement:
        return Agreement(dist.HashStore(), what, 0, 1, timedelta(seconds=60), remedy)


class Tokens:
    """Sample i counts up from 100 i + 1; reads are recorded."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths
        self.reads: list[tuple[int, int, int]] = []

    def read(self, i: int, begin: int, end: int) -> list[int]:
        self.reads.append((i, begin, end))
        return [100 * i + t + 1 for t in range(begin, end)]
