"""Batches that benchmarks share: consecutive lengths of the three traces, and seeded documents."""

from __future__ import annotations

import csv
import random
from pathlib import Path

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


def _bounds(text: str) -> tuple[int, int]:
    low, high = text.strip("[]").split(",")
    return max(1, int(low)), int(high)
