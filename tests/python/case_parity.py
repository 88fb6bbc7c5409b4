"""Loss and every gradient, several ranks under FSDP2 against one process in float64, under every kind of
plan.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from nsp._native import core
from small_model import LAYERS, Samples, config, make_model, reference

import nsp


@dataclass(frozen=True)
class Case:
    world: int
    lengths: tuple[int, ...]
    sp_max: int
    heads: int = 8
    kv_heads: int = 2
    hide: str = ""  # which labels are -100
    backends: tuple[str, ...] = ("ulysses",)

    @property
    def ranks_per_host(self) -> int:
        """Half of the ranks, so that usp has two hosts."""
        return self.world if self.backends == ("ulysses",) else max(1, self.world // 2)


PARITY = {
    "one sequence on one rank": Case(1, (7,), 1),
    "three on one rank": Case(1, (5, 1, 12), 1),
    "[7] on 2": Case(2, (7,), 2),
    "[4, 3] on 2": Case(2, (4, 3), 2),
    "labels hidden on one rank": Case(2, (12, 9), 2, hide="first half"),
    "3 sequences on 4 ranks": Case(4, (31, 5, 18), 4),
    "9 sequences on 4 ranks": Case(4, (61, 3, 17, 1, 29, 8, 2, 40, 11), 4),
    "8/1 heads at 4": Case(4, (33, 6, 15, 2), 4, kv_heads=1),
    "4/4 heads at 4": Case(4, (33, 6, 15, 2), 4, heads=4, kv_heads=4),
    "labels hidden on some ranks of 4": Case(4, (24, 9, 30), 4, hide="odd samples"),
    "world 6 in three trees": Case(6, (23, 9, 4, 1, 16, 7, 5), 2),
    "[1] on 8": Case(8, (1,), 8),
    "[137, 2041, 89] on 8": Case(8, (137, 2041, 89), 8),
    "one long, many short on 8": Case(8, (701, 90, 41, 44, 30, *range(1, 20)), 8),
    "8/1 heads at 8": Case(8, (65, 10, 3, 22), 8, kv_heads=1),
    "[7] on 2 by all backends": Case(2, (7,), 2, backends=("all",)),
    "[4, 3] on 2 by all backends": Case(2, (4, 3), 2, backends=("all",)),
    "[2999] on 4 by all backends": Case(4, (2999,), 4, heads=4, backends=("all",)),
    "9 sequences on 4 by all backends": Case(4, (61, 3, 17, 1, 29, 8, 2, 40, 11), 4, backends=("all",)),
    "7/7 heads at 4": Case(4, (33, 6, 15, 2), 4, heads=7, kv_heads=7, backends=("gather", "ring")),
    "7/1 heads at 4": Case(4, (33, 6, 15, 2), 4, heads=7, kv_heads=1, backends=("gather", "ring")),
    "labels hidden on some ranks of 4 by all backends": Case(
        4, (24, 9, 30), 4, hide="odd samples", backends=("all",)
    ),
    "[1] on 8 by all backends": Case(8, (1,), 8, backends=("all",)),
    "8/1 heads at 8 by all backends": Case(8, (65, 10, 3, 22), 8, kv_heads=1, backends=("all",)),
    "2/1 heads at 8": Case(8, (65, 10, 3, 22), 8, heads=2, kv_heads=1, backends=("all",)),
}
HIDE: dict[str, Callable[[int, int], bool]] = {
    "first half": lambda i, t: t <= 6,
    "odd samples": lambda i, t: i % 2 == 1 or t % 3 == 0,
}


class Given(nsp.PlannedSteps):
    """Steps whose plan is given, and whose boundaries may be wrong on purpose."""

    given: bytes | None = None
    too_early: int = 0

    def plan(self, k: int, planner: str | None = None) -> nsp.Plan:
        return nsp.Plan.from_json(self.given) if self.given is not None else super().plan(k, planner)

    def _segment(
        self, samples: tuple[int, ...], sequence: int, begin: int, end: int
    ) -> tuple[torch.Tensor, ...]:
        return super()._segment(samples, sequence, begin - self.too_early, end - self.too_early)


@functools.cache
def context(
    sp_max: int,
    heads: int,
    kv_heads: int,
    backends: tuple[str, ...] = ("ulysses",),
    ranks_per_host: int | None = None,
) -> nsp.Context:
    return nsp.init(
        None,
        config(heads, kv_heads),
        sp_max=sp_max,
        backends=backends,
        ranks_per_host=ranks_per_host,
        timeout=timedelta(seconds=60),
    )


@functools.cache
def sharded(sp_max: int, heads: int, kv_heads: int, *more: Any) -> Any:
    """Attached to the context of the same arguments."""
    model = make_model(heads, kv_heads)
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    ctx = context(sp_max, heads, kv_heads, *more)
    if heads == 4:  # attached before sharding as well as after it
        nsp.attach(model, ctx)
        return nsp.shard(model, mesh)
    nsp.shard(model, mesh)
    nsp.attach(model, ctx)
    return model


def plans(case: Case, lengths: list[int]) -> dict[str, bytes | None]:
    """Each degree for all, one level in two waves, two mixed plans that use several levels, two rounds, and
    the planner's own (None).
    """
    if case.backends != ("ulysses",):
        return plans_by_ways(case, lengths)

    def made(
        rounds: list[list[tuple[int, int, int, int]]], cuts: list[list[tuple[int, int]]] | None = None
    ) -> bytes:
        settings = (case.world, case.sp_max, case.world, 0, rounds, "given")
        data: bytes = core().make_plan(*settings, cuts=cuts or [])
        return data

    degrees = list(core().allowed_degrees(case.heads, case.sp_max))
    found: dict[str, bytes | None] = {"own": None}
    for degree in degrees:
        nodes = case.world // degree
        placements = [(s, n, s % nodes * degree, degree) for s, n in enumerate(lengths)]
        found[f"degree {degree}"] = made([placements])
        if degree == case.world > 1 and len(set(lengths)) > 1:
            found["two waves"] = made([placements], [[(degree, min(lengths))]])
    dice = random.Random(3)
    for name in ("mixed a", "mixed b"):
        placements = []
        for s, n in enumerate(lengths):
            degree = degrees[-1 - s % len(degrees)] if name == "mixed a" else dice.choice(degrees)
            placements.append((s, n, dice.randrange(case.world // degree) * degree, degree))
        found[name] = made([placements])
    if len(lengths) > 2:
        found["two rounds"] = made([placements[:2], placements[2:]])
    return found


def plans_by_ways(case: Case, lengths: list[int]) -> dict[str, bytes | None]:
    """Each way for all, a plan with every backend on the root's level, two of random ways and nodes, and the
    planner's own (None).
    """
    ways = core().allowed_ways(case.heads, case.sp_max, case.ranks_per_host, list(case.backends))

    def made(choose: Callable[[int], tuple[tuple[int, str, int], int]]) -> bytes:
        placements = []
        for s, n in enumerate(lengths):
            (degree, backend, inner), node = choose(s)
            placements.append((s, n, node % (case.world // degree) * degree, degree, backend, inner))
        data: bytes = core().make_plan(case.world, case.sp_max, case.ranks_per_host, 0, [placements], "given")
        return data

    found: dict[str, bytes | None] = {"own": None}
    for way in ways:
        if way[1] not in ("local", "ulysses"):
            found[f"{way[1]} at {way[0]}"] = made(lambda s, way=way: (way, s))  # type: ignore[misc]
    root = [way for way in ways if way[0] == case.sp_max]
    found["all backends at the root"] = made(lambda s: (root[-1 - s % len(root)], 0))
    for name, seed in (("mixed a", 3), ("mixed b", 4)):
        dice = random.Random(seed)
        found[name] = made(lambda _, dice=dice: (dice.choice(ways), dice.randrange(8)))  # type: ignore[misc]
    return found


def exchanges(case: Case, degree: int, backend: str, inner: int) -> int:
    """Of a layer's forward and backward pass, on every rank: 4 for heads, 3 times K and V between ring
    indices, and as often again where inner ranks share a KV head.
    """
    ring = degree // inner
    query, readers = case.heads // inner, case.heads // case.kv_heads
    shared = inner > 1 and query <= readers and readers % query == 0 and readers > query
    hops = 0 if ring == 1 else ring - 1 if backend.endswith("ring") else 1
    return (4 if inner > 1 else 0) + 3 * hops * (2 if shared else 1)


def run_step(model: Any, step: nsp.Step) -> tuple[float, dict[str, torch.Tensor]]:
    model.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    for row in step.rounds:
        loss = model(**row.inputs).loss
        loss.backward()
        total += loss.detach().double()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size(), {
        n: p.grad.full_tensor() for n, p in model.named_parameters()
    }


def relative(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> float:
    worst = 0.0
    for name, reference_grad in expected.items():
        scale = reference_grad.abs().max().item()
        error = (found[name] - reference_grad).abs().max().item()
        worst = max(worst, error / scale if scale > 0 else error)
    return worst


def key(case: Case) -> tuple[Any, ...]:
    """What cases share a context and a model by."""
    if case.backends == ("ulysses",):
        return (case.sp_max, case.heads, case.kv_heads)
    return (case.sp_max, case.heads, case.kv_heads, case.backends, case.ranks_per_host)


def make_steps(case: Case) -> tuple[Given, Samples]:
    samples = Samples(list(case.lengths), HIDE.get(case.hide))
    ctx = context(*key(case))
    return Given(samples, ctx, max(sum(case.lengths), 64)), samples


def launched_ways(plan: nsp.Plan) -> list[tuple[int, str, int]]:
    """Above degree 1, of all rounds: each way that is used, twice where both waves of its level have it."""
    found = []
    for placements, made in zip(plan.rounds, json.loads(plan.json)["rounds"], strict=True):
        cuts = made["schedule"].get("cuts", {})
        launched = {
            (p.degree, p.backend, p.ulysses_degree, p.tokens <= cuts.get(str(p.degree), 0))
            for p in placements
            if p.degree > 1
        }
        found += [way for *way, _ in launched]
    return [(degree, backend, inner) for degree, backend, inner in found]


def run_case(case: Case) -> dict[str, Any]:
    """Relative error of loss and gradients, and what the executor counted, for each plan."""
    model = sharded(*key(case))
    steps, samples = make_steps(case)
    ordered = [samples.lengths[i] for i in steps.samples(0)]
    first = dist.get_rank() == 0
    loss, grads = reference(make_model(case.heads, case.kv_heads), samples) if first else (0.0, {})
    found: dict[str, Any] = {}
    for name, given in plans(case, ordered).items():
        steps.given = given
        steps.context.world.reset_counters()
        step = next(iter(nsp.loader(steps))) if case.hide else steps[0]
        got_loss, got = run_step(model, step)
        found[name] = {
            "loss": abs(got_loss - loss) / max(abs(loss), 1e-300) if loss else abs(got_loss),
            "grads": relative(got, grads),
            "counters": steps.context.world.counters(),
            "exchanges": sum(LAYERS * exchanges(case, *way) for way in launched_ways(step.plan)),
            "calls": LAYERS * len(step.rounds),
            "levels": sorted({p.degree for placements in step.plan.rounds for p in placements}),
        }
    return found


def planted_boundary() -> float:
    """Rank 1 reads one token too early: the same number of tokens, so that only the numbers can show it."""
    case = PARITY["[4, 3] on 2"]
    model = sharded(case.sp_max, case.heads, case.kv_heads)
    steps, samples = make_steps(case)
    steps.given = plans(case, [samples.lengths[i] for i in steps.samples(0)])["degree 2"]
    steps.too_early = int(dist.get_rank() == 1)
    step = steps[0]
    _, got = run_step(model, step)
    _, expected = reference(make_model(case.heads, case.kv_heads), samples)
    return relative(got, expected)


def cases(world: int) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {
        name: functools.partial(run_case, case) for name, case in PARITY.items() if case.world == world
    }
    if world == 2:
        found["planted boundary"] = planted_boundary
    return found
