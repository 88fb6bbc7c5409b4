"""The plans that benchmarks compare on one batch: every planner's, and one degree for all by each backend."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch.distributed as dist
from nsp._native import core

import nsp

MINE, SERIAL = "nsp", "nsp serial"  # what the others are compared with; the same plan, nothing beside
Job = TypeVar("Job", bound=Hashable)


@dataclass(frozen=True)
class Topology:
    """What plans are made for. profile: as in `nsp.plan`. ranks_per_host: as NCCL sees them."""

    world: int
    ranks_per_host: int
    profile: str

    @property
    def largest(self) -> int:
        """The largest degree that the tree can have."""
        return self.world & -self.world


def profile_of(preset: str, inside: float | None, between: float | None) -> str:
    """The preset's name; or, where a link is given in GB/s, an H200 cluster with these links, as JSON."""
    if inside is None and between is None:
        return preset
    gpu = {"attention_forward": 565e12, "attention_backward": 505e12, "dense": 782e12}

    def link(gigabytes: float, latency: float) -> dict[str, float]:
        return {"bytes_per_second": 1e9 * gigabytes, "latency_seconds": latency}

    cluster = {"name": "h200 with other links", "device": "gpu", "hosts": 0, "ranks_per_host": 8}
    cluster |= {"inside": link(inside or 280, 60e-6), "between": link(between or 42, 100e-6)}
    return json.dumps(cluster | {"gpu_memory_bytes": 141 * 2**30, "flops_per_second": gpu})


@dataclass(frozen=True)
class Variant:
    """How a batch is planned. planner: {degree} is the largest. backend: all sequences of the plan above
    degree 1 run by it instead. halves: as if the ranks were of two hosts, where they are of one.
    """

    planner: str
    backends: tuple[str, ...] = ("ulysses",)
    backend: str = ""
    halves: bool = False
    streaming: bool = True

    def plan(self, lengths: list[int], topology: Topology, model: str, **request: Any) -> nsp.Plan:
        """ValueError or RuntimeError, one sentence: it cannot."""
        world, degree, hosted = topology.world, topology.largest, topology.ranks_per_host
        if self.halves and hosted == world:
            hosted = max(1, world // 2)
        if degree == 1 and self.planner.endswith("{degree}"):
            raise ValueError("needs two ranks")
        planner = self.planner.format(degree=degree)
        request |= {"ranks_per_host": hosted, "profile": topology.profile, "backends": self.backends}
        made = nsp.plan(lengths, world=world, sp_max=degree, model=model, planner=planner, **request)
        if not made.feasible:
            raise RuntimeError(made.why)
        if self.halves and not any(one.backend.startswith("usp") for row in made.rounds for one in row):
            raise ValueError("needs groups that span two hosts, or halves, of at least two ranks each")
        return _by(made, self.backend) if self.backend else made


VARIANTS = {
    "static ulysses": Variant("static:{degree}"),
    "static ring": Variant("static:{degree}", backend="ring"),
    "static gather": Variant("static:{degree}", backend="gather"),
    "static usp": Variant("static-usp:{degree}", halves=True),
    "static best": Variant("static"),
    "megatron-dcp": Variant("megatron-dcp"),
    "megatron-dcp ring": Variant("megatron-dcp", backend="ring"),
    "flexsp": Variant("flexsp"),
    "nsp-2l": Variant("nsp-2l"),
    "algorithm1": Variant("algorithm1"),
    MINE: Variant("nsp"),
    "nsp all backends": Variant("nsp", backends=("all",)),
    SERIAL: Variant("nsp", streaming=False),
}


def shared(jobs: Sequence[Job], make: Callable[[Job], nsp.Plan]) -> dict[Job, nsp.Plan | str]:
    """What `make` gives for every job, each made by one rank; the sentence where it fails. Collective."""
    made: dict[Job, nsp.Plan | str] = {}
    for job in jobs[dist.get_rank() :: dist.get_world_size()]:
        try:
            made[job] = make(job)
        except (ValueError, RuntimeError) as error:
            made[job] = str(error)
    shares: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(shares, made)
    by_job = {job: plan for share in shares for job, plan in share.items()}
    return {job: by_job[job] for job in jobs}


def first_alike(plans: Mapping[str, nsp.Plan]) -> dict[str, str]:
    """For each name the first one, nsp before all, with the same placements and schedules: its run serves."""
    names = sorted(plans, key=lambda name: name != MINE)
    rounds = {name: json.loads(plans[name].json)["rounds"] for name in names}
    return {name: next(other for other in names if rounds[other] == rounds[name]) for name in plans}


def described(plans: Mapping[str, nsp.Plan | str]) -> dict[str, Any]:
    """For JSON."""
    good = {name: plan for name, plan in plans.items() if isinstance(plan, nsp.Plan)}
    first, found = first_alike(good), {}
    for name, plan in plans.items():
        if isinstance(plan, str):
            found[name] = {"why_not": plan}
            continue
        found[name] = {"rounds": plan.num_rounds, "degrees": plan.degrees, "planning_ms": plan.planning_ms}
        found[name] |= {"same_plan_as": first[name]} if first[name] != name else {}
    return found


def _by(made: nsp.Plan, backend: str) -> nsp.Plan:
    def place(one: Any) -> tuple[Any, ...]:
        node = (one.sequence, one.tokens, one.first_rank, one.degree)
        return node if one.degree == 1 else (*node, backend, 1)

    rounds = [[place(one) for one in placements] for placements in made.rounds]
    sizes = (made.world, made.sp_max, made.ranks_per_host, made.token_budget)
    return nsp.Plan.from_json(core().make_plan(*sizes, rounds, f"{made.planner} by {backend}"))
