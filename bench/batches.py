"""Batches that benchmarks share: consecutive lengths of the three traces, and seeded documents."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsp._native import core

TRACES = {
    "common_crawl": "flexsp_common_crawl_head.txt",
    "github": "flexsp_github_head.txt",
    "wikipedia": "flexsp_wikipedia.txt.gz",
}
FOLDER = Path(__file__).parents[1] / "tests/data/traces"
DOCUMENTS = FOLDER / "magiattention_doc_length_distribution.csv"


def trace_lengths(trace: str) -> list[int]:
    """In file order."""
    return list(core().load_lengths(str(FOLDER / TRACES[trace])))


def trace_batches(trace: str, tokens: int, count: int) -> list[list[int]]:
    """The first full batches of at most so many tokens; sequences longer than a batch are cut."""
    cut = [min(length, tokens) for length in trace_lengths(trace)]
    return [list(batch) for batch in core().full_batches(cut, tokens, tokens)[:count]]


def document_batches(tokens: int, count: int, seed: int) -> list[list[int]]:
    """Batches of exactly so many tokens: lengths drawn from the histogram, uniform inside a bucket, none
    above a quarter of the batch; the last one is cut to fit.
    """
    with DOCUMENTS.open() as file:
        buckets = [(*_bounds(row["range"]), int(row["number"])) for row in csv.DictReader(file)]
    batches = []
    for index in range(count):
        dice, left, batch = random.Random(f"{seed} {index}"), tokens, []
        while left > 0:
            low, high, _ = dice.choices(buckets, [number for _, _, number in buckets])[0]
            length = min(dice.randint(low, high), max(1, tokens // 4), left)
            batch.append(length)
            left -= length
        batches.append(batch)
    return batches


@dataclass(frozen=True)
class Batch:
    """A batch of a trace, of sequences up to `max_length`; `index` among all full ones."""

    trace: str
    max_length: int
    index: int
    lengths: tuple[int, ...]

    @property
    def key(self) -> tuple[str, int, int]:
        return self.trace, self.max_length, self.index

    @property
    def name(self) -> dict[str, Any]:
        return {"trace": self.trace, "max_length": self.max_length, "batch": self.index}


def long_batches(traces: Sequence[str], limits: Sequence[int], tokens: int, count: int) -> list[Batch]:
    """The first `count` batches of each trace and maximum length, in turns. A batch has at most so many
    tokens, or one sequence of the maximum length; longer sequences are left out. Of a maximum length above
    the least, only batches that hold a sequence beyond the one before: the others are nearly the same.
    """
    turns: list[list[Batch]] = []
    for trace in traces:
        lengths = trace_lengths(trace)
        for below, limit in zip([0, *limits], limits, strict=False):
            full = core().full_batches(lengths, limit, max(tokens, limit))
            new = [Batch(trace, limit, i, tuple(one)) for i, one in enumerate(full) if max(one) > below]
            turns.append(new[:count])
    by_limit = sorted(turns, key=lambda turn: turn[0].max_length if turn else 0)
    return [turn[i] for i in range(count) for turn in by_limit if i < len(turn)]


def _bounds(text: str) -> tuple[int, int]:
    low, high = text.strip("[]").split(",")
    return max(1, int(low)), int(high)
