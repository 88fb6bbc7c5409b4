"""How rows travel inside a host: by copy engines out of memory that neighbours see, where that works, else by
the process group's collectives. Numbers are the same either way.

All ranks agree on the *reach*: the largest degree whose nodes each lie on one host, with every rank of a node
able to read the others' devices. Levels above it go by collectives. `NSP_TRANSPORT` forces `collective` or
`peer-copy`; on every rank alike.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from nsp.agreement import Agreement, Entry

CHOICES = ("auto", "collective", "peer-copy")


@dataclass(frozen=True)
class Neighbour:
    """Where a rank runs; an empty host or device: it cannot take part."""

    host: str
    device: str


NOBODY = Neighbour("", "")


@dataclass(frozen=True)
class Reach:
    """Degree up to which peer copies serve (1: none), and why no further, as this rank sees it."""

    degree: int
    why: str


def wanted() -> str:
    """ValueError: NSP_TRANSPORT names no transport."""
    choice = os.environ.get("NSP_TRANSPORT") or "auto"
    if choice not in CHOICES:
        raise ValueError(f"NSP_TRANSPORT: {choice!r} is not one of {', '.join(CHOICES)}")
    return choice


def obstacle(device: torch.device, backend: str, built: bool) -> str:
    """Why this rank cannot use peer copies whatever the others are; empty if nothing stands against it."""
    if device.type != "cuda":
        return f"tensors are on {device.type}"
    if backend != "nccl":
        return f"the process group is {backend}, not nccl"
    if not built:
        return "this build has no CUDA"
    if os.environ.get("NCCL_P2P_DISABLE", "0") not in ("", "0"):
        return "NCCL_P2P_DISABLE is set"
    return ""


def here(device: torch.device) -> Neighbour:
    """This rank's host and device. NCCL_HOSTID divides a host for NCCL, and so here."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    parts = [socket.gethostname(), boot.read_text().strip() if boot.exists() else ""]
    parts.append(os.environ.get("NCCL_HOSTID", ""))
    return Neighbour("/".join(parts), str(torch.cuda.get_device_properties(device).uuid))


def can_read(device: torch.device) -> Callable[[str], bool]:
    """Whether this process sees a device (by uuid) and its own device can read that one's memory."""
    visible = {str(torch.cuda.get_device_properties(i).uuid): i for i in range(torch.cuda.device_count())}

    def readable(uuid: str) -> bool:
        other = visible.get(uuid)
        return other is not None and torch.cuda.can_device_access_peer(device, other)

    return readable


def local_reach(rank: int, neighbours: dict[int, Neighbour], readable: Callable[[str], bool]) -> Reach:
    """Largest degree whose node of this rank could use peer copies. `neighbours`: the ranks of its largest
    node by rank, itself among them.
    """
    me, degree = neighbours[rank], 1
    if not me.device:
        return Reach(1, "this rank cannot use peer copies")
    while 2 * degree <= len(neighbours):
        first = rank // (2 * degree) * 2 * degree
        for other in range(first, first + 2 * degree):
            it = neighbours[other]
            if other == rank:
                continue
            if not it.device:
                return Reach(degree, f"rank {other} cannot use peer copies")
            if it.host != me.host:
                return Reach(degree, f"rank {other} is on another host")
            if it.device == me.device:
                return Reach(degree, f"rank {other} shares this rank's device")
            if not readable(it.device):
                return Reach(degree, f"the device of rank {other} is not visible, or cannot be read")
        degree *= 2
    return Reach(degree, "")


def agree(
    agreement: Agreement, sp_max: int, me: Neighbour, readable: Callable[[str], bool], choice: str
) -> Reach:
    """The reach that all ranks share. Collective over the agreement's store. RuntimeError: ranks that want
    different transports.
    """
    rank, world, store = agreement.rank, agreement.world, agreement.store
    key = f"nsp/{agreement.name}/neighbour/"
    store.set(key + str(rank), json.dumps([me.host, me.device]))
    members = range(rank // sp_max * sp_max, (rank // sp_max + 1) * sp_max)
    store.wait([key + str(other) for other in members], agreement.timeout)
    found = {other: Neighbour(*json.loads(store.get(key + str(other)))) for other in members}
    mine = local_reach(rank, found, readable)
    # Digit i of the sum, in base world + 1: how many ranks reach degree 2 ** (i + 1).
    levels = [2 << i for i in range(sp_max.bit_length() - 1)]
    count = sum((world + 1) ** i for i, degree in enumerate(levels) if degree <= mine.degree)
    total, shared = agreement.compare(Entry({"NSP_TRANSPORT": choice}, count=count)), 1
    store.delete_key(key + str(rank))
    for degree in levels:
        total, ranks = divmod(total, world + 1)
        if ranks < world:
            break
        shared = degree
    return Reach(shared, mine.why if mine.degree == shared else "other ranks cannot go further")


def choose(agreement: Agreement, sp_max: int, device: torch.device, backend: str, built: bool) -> Reach:
    """What this context uses. Collective. ValueError on all ranks: peer copies were forced and cannot be."""
    choice = wanted()
    why = "NSP_TRANSPORT asks for collectives" if choice == "collective" else obstacle(device, backend, built)
    if why:
        reach = agree(agreement, sp_max, NOBODY, lambda _: False, choice)
    else:
        reach = agree(agreement, sp_max, here(device), can_read(device), choice)
    reach = Reach(reach.degree, why or reach.why)
    if choice == "peer-copy" and reach.degree == 1 < sp_max:
        raise ValueError(f"NSP_TRANSPORT: peer-copy is not possible: {reach.why}; use auto or collective")
    return reach
