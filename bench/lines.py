"""JSON lines of a benchmark: rank 0 prints them and keeps them in a file; and where they were measured."""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import nsp

ENVIRONMENT = (
    "NCCL_",
    "NSP_NCCL",
    "NSP_TRANSPORT",
    "CUDA_DEVICE_MAX",
    "PYTORCH_ALLOC_CONF",
    "TORCH_SYMM_MEM",
)


class Lines:
    """Appends to `path`, if one is given. `fresh`: the file begins anew."""

    def __init__(self, path: str, fresh: bool = True) -> None:
        self.path = Path(path) if path and dist.get_rank() == 0 else None
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("w" if fresh else "a").close()

    def write(self, line: dict[str, Any]) -> None:
        if dist.get_rank() > 0:
            return
        text = json.dumps(line)
        print(text, flush=True)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(text + "\n")


def earlier_lines(path: str) -> list[dict[str, Any]]:
    """Of a run that goes on with its file. ValueError: there is nothing to go on with."""
    if not Path(path).is_file():
        raise ValueError(
            f"--again: {path or 'no --json FILE'} is not there; leave --again out the first time"
        )
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def some_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """The type of an option that lists some of these names."""
    allowed = list(names)

    def read(text: str) -> list[str]:
        given = text.split(",")
        if wrong := [name for name in given if name not in allowed]:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not one of {', '.join(allowed)}")
        return given

    return read


def hosts_for_nccl(hosts: int) -> int:
    """Ranks a host. Above one, NCCL takes consecutive ranks for so many hosts (NCCL_HOSTID): before its
    first communicator. ValueError: it does not divide the ranks.
    """
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if hosts < 1 or world % hosts:
        raise ValueError(f"--hosts: {hosts} does not divide the {world} ranks; give a divisor")
    if hosts > 1:
        os.environ["NCCL_HOSTID"] = f"part-{rank // (world // hosts)}"
    return world // hosts


def place(context: nsp.Context, profile: str) -> dict[str, Any]:
    """Where the lines that follow were measured."""
    cuda = context.device.type == "cuda"
    reach = context.world.peer_reach
    return {
        "gpus" if cuda else "cpu_ranks": context.world_size,
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "kernel": context.kernel,
        "transport": f"peer copies up to degree {reach}" if reach > 1 else "collectives",
        "ranks_per_host": context.settings.ranks_per_host,
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(ENVIRONMENT)},
        "profile": profile,
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if cuda else "",
    }


def median_ratio(over: Iterable[float], under: Iterable[float]) -> float:
    """Median of the paired ratios."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))
