"""A plan as a typed value, and `plan`, which makes one from lengths. No torch here.

`Plan.json` keeps the exact bytes that C++ wrote: they are what enters the executor and what the hash is of.
"""

from __future__ import annotations

import json
import operator
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nsp._native import core
from nsp.sizes import parse_bytes


@dataclass(frozen=True)
class Placement:
    """One sequence on one node of the tree."""

    sequence: int  # index in the batch
    tokens: int  # kept tokens
    first_rank: int
    degree: int
    backend: str  # local, ulysses, gather, ring, usp-ring or usp-gather
    ulysses_degree: int = 1
    mark: str = "recompute"  # or offload, save, save_qkv


@dataclass(frozen=True)
class Dropped:
    """A sequence that was skipped (kept 0) or truncated."""

    sequence: int
    tokens: int
    kept: int
    why: str


@dataclass(frozen=True)
class Predicted:
    """What the cost model expects: `seconds` of the step, `forward` and `backward` seconds of one layer."""

    seconds: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    tokens_max: int = 0
    bytes_max: int = 0


@dataclass(frozen=True)
class Plan:
    """All rounds of one optimizer step (nsp-plan/1). Not feasible: `why` says which sequence or rank, and the
    remedy.

    The placements of thousands of sequences become Python values only when `rounds` is asked for.
    """

    world: int
    ranks_per_host: int
    sp_max: int
    token_budget: int
    planner: str
    feasible: bool
    num_sequences: int
    num_tokens: int
    num_rounds: int
    dropped: tuple[Dropped, ...]
    predicted: Predicted
    bound_seconds: float  # one layer, forward + backward
    hash: str
    planning_ms: float
    json: bytes = field(repr=False)
    why: str = ""

    @classmethod
    def from_json(cls, data: bytes | str, why: str = "") -> Plan:
        """Reads nsp-plan/1. ValueError: not a plan of this format."""
        raw = data.encode() if isinstance(data, str) else bytes(data)
        try:
            header = core().plan_header(raw)
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"plan: not a nsp-plan/1 document ({error}); write one with nsp.plan") from error
        header["dropped"] = tuple(Dropped(*entry) for entry in header["dropped"])
        header["predicted"] = Predicted(*header["predicted"])
        return cls(**header, json=raw, why=why)

    def to_json(self) -> bytes:
        """The exact bytes the plan was read from."""
        return self.json

    @cached_property
    def rounds(self) -> tuple[tuple[Placement, ...], ...]:
        """The placements of each round, by sequence."""
        rounds = json.loads(self.json)["rounds"]
        return tuple(tuple(Placement(**p) for p in r["placements"]) for r in rounds)

    @property
    def degrees(self) -> dict[int, int]:
        """Number of sequences on each degree, all rounds."""
        count = Counter(p.degree for placements in self.rounds for p in placements)
        return dict(sorted(count.items()))

    @property
    def bound_step_seconds(self) -> float:
        """`bound_seconds` on the scale of `predicted.seconds`: attention's load replaced by its lower
        bound.
        """
        load = self.predicted.forward + self.predicted.backward
        return self.predicted.seconds * self.bound_seconds / load if load > 0 else 0.0

    def check(self) -> list[str]:
        """Broken rules, one sentence each; empty when the plan may be executed."""
        return list(core().check(self.json))


def plan(
    lengths: Iterable[int],
    *,
    world: int = 1,
    sp_max: int = 1,
    model: str | os.PathLike[str] = "qwen3-30b-a3b",
    profile: str | os.PathLike[str] = "h200",
    ranks_per_host: int | None = None,
    token_budget: int = 0,
    planner: str = "nsp",
    effort: str = "default",
    over_length: str = "error",
    checkpointing: bool = False,
    byte_budget: int | str = 0,
    host_budget: int | str = 0,
    mark_order: str = "auto",
    backends: Sequence[str] = ("ulysses",),
    ep: int = 1,
) -> Plan:
    """Plans one batch.

    lengths: tokens of each sequence. model, profile: a preset's name, a JSON file's path, or JSON text.
    ranks_per_host: ranks that share a host, for what traffic costs; None: all of them.
    token_budget: most tokens a rank holds in a round; 0: 1.2 x all tokens / world, rounded up. A larger
    batch takes several rounds, planned together: give a whole window of gradient accumulation as one.
    over_length: error, skip or truncate.
    checkpointing: layers run again in backward, so judge the plan by such a step; budgets of bytes imply it.
    byte_budget: most attention output that a rank saves of a layer, so that it need not be recomputed: bytes,
    or text such as '256MiB'; mark_order, of what is saved: seconds-per-byte; tree, from the root down; auto,
    the better by simulated step. host_budget: most of the rest that a rank keeps in memory of its host, where
    the profile says that copies hide behind computation.
    backends: what planner nsp may use beside local: ulysses, gather, ring, usp-ring, usp-gather, usp, all.
    Sliding windows run on local and ulysses alone.
    ep: ranks of an expert-parallel group; the predicted seconds count the wait at its exchange.
    No fit is an answer: `feasible` is False and `why` holds the sentence. ValueError: a bad argument.
    """
    words = {
        "model": os.fspath(model) if isinstance(model, os.PathLike) else model,
        "profile": os.fspath(profile) if isinstance(profile, os.PathLike) else profile,
        "planner": planner,
        "effort": effort,
        "over_length": over_length,
        "mark_order": mark_order,
    }
    for name, word in words.items():
        if not isinstance(word, str):
            raise ValueError(f"{name}: {word!r} is not text")
    if isinstance(backends, str):
        raise ValueError(f"backends: {backends!r} is text, not a list of names; give [{backends!r}]")
    for name, listed in (("backends", backends), ("lengths", lengths)):
        if not isinstance(listed, Iterable):
            raise ValueError(f"{name}: {listed!r} is not a list")
    names = list(backends)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"backends: {name!r} is not text")
    ranks = {"world": world, "sp_max": sp_max, "ranks_per_host": ranks_per_host or world, "ep": ep}
    data, why = core().plan(
        [_tokens(index, length) for index, length in enumerate(lengths)],
        **{name: _whole(name, number, 2**30) for name, number in ranks.items()},
        token_budget=_whole("token_budget", token_budget),
        byte_budget=_bytes("byte_budget", byte_budget),
        host_budget=_bytes("host_budget", host_budget),
        **words,
        checkpointing=bool(checkpointing),
        backends=names,
    )
    return Plan.from_json(data, why)


def fitting(step: int, made: Plan) -> Plan:
    """The plan itself. RuntimeError: it does not fit."""
    if not made.feasible:
        raise RuntimeError(f"step {step}: no plan fits: {made.why}")
    return made


def _whole(name: str, number: Any, most: int = 2**62) -> int:
    try:
        whole = operator.index(number)
    except TypeError:
        raise ValueError(f"{name}: {number!r} is not an integer") from None
    if abs(whole) > most:
        raise ValueError(f"{name}: {whole} is too large; give at most {most}")
    return whole


def _bytes(name: str, size: int | str) -> int:
    if not isinstance(size, str):
        return _whole(name, size)
    if not size.strip().lower().endswith("b"):
        raise ValueError(
            f"{name}: {size!r} is not a size; give bytes as an integer, or text such as '256MiB'"
        )
    return parse_bytes(name, size)


def _tokens(index: int, length: Any) -> int:
    return _whole(f"lengths[{index}]", length)
