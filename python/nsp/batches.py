"""Which samples make a global batch, and how much of each."""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterator, Sequence

log = logging.getLogger("nsp")


def kept_lengths(lengths: Sequence[int], limit: int, policy: str, quiet: bool = False) -> list[int]:
    """Tokens used of each sample: all, the first `limit`, or 0 when skipped; a warning counts them."""
    kept = []
    for i, length in enumerate(lengths):
        try:
            kept.append(operator.index(length))
        except TypeError:
            raise ValueError(f"lengths: sample {i} has {length!r} tokens; give integers") from None
    for i, length in enumerate(kept):
        if length < 1:
            raise ValueError(f"lengths: sample {i} has {length} tokens; leave empty samples out")
    over = [i for i, length in enumerate(kept) if length > limit]
    if over and policy == "error":
        raise ValueError(
            f"lengths: sample {over[0]} has {kept[over[0]]} tokens but a step holds samples of at "
            f"most {limit}; raise "
            "tokens_per_step, token_budget or sp_max, or init with over_length='skip' or 'truncate'"
        )
    for i in over:
        kept[i] = 0 if policy == "skip" else limit
    if over and not quiet:
        log.warning("%d of %d samples are longer than %d tokens: %s", len(over), len(kept), limit, policy)
    return kept


def check_targets(targets: Sequence[int] | None, lengths: Sequence[int]) -> None:
    """ValueError unless there is one count a sample, from 0 to its length - 1: the first token is none."""
    if targets is None:
        return
    if len(targets) != len(lengths):
        raise ValueError(f"targets: {len(targets)} counts for {len(lengths)} samples; give one a sample")
    for i, (count, length) in enumerate(zip(targets, lengths, strict=True)):
        if not 0 <= count < max(length, 1):
            raise ValueError(
                f"targets: sample {i} of {length} tokens cannot have {count} labelled ones; "
                f"give 0 to {length - 1}"
            )


def batches(
    order: Sequence[int], kept: Sequence[int], limit: int, drop_last: bool
) -> Iterator[tuple[int, ...]]:
    batch: list[int] = []
    tokens = 0
    for i in order:
        if kept[i] == 0:
            continue
        if batch and tokens + kept[i] > limit:
            yield tuple(batch)
            batch, tokens = [], 0
        batch.append(i)
        tokens += kept[i]
    if batch and not drop_last:
        yield tuple(batch)
