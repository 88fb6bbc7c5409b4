"""Budgets that are found instead of given: `token_budget="auto"`, `byte_budget="auto"`.

Capacity is what a rank's device has for tensors: free memory and what torch's allocator holds, less tensors
that are not the attached model's; the smallest over the ranks, agreed once, when the model is attached. A
part stays unused, since an allocator cannot fill every gap. From there all is formula (step_moments.py),
equal on all ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsp.memory import output_row_bytes, saved_row_bytes
from nsp.planning import Plan
from nsp.sizes import format_bytes
from nsp.step_memory import Peak, most_bytes, plan_peak
from nsp.step_moments import COUNTS, StepMemory

if TYPE_CHECKING:
    from nsp.context import Context

HEADROOM = 0.06  # of the capacity: gaps between blocks, small tensors
MOST_TOKENS = 1 << 31


@dataclass(frozen=True)
class Budgets:
    """token_budget: most tokens a rank holds in a round. byte_budget: most bytes of attention output that it
    saves of a checkpointed layer.
    """

    token_budget: int
    byte_budget: int


def find_budgets(context: Context, tokens_per_step: int, lengths: Sequence[int]) -> Budgets:
    """What steps of so many tokens, of samples of these lengths, are planned with. Given budgets stay;
    `auto` ones fill the capacity. Both `auto`: tokens as the default would have them, at most what fits, and
    the rest for saved attention. ValueError: not even one token fits, or a budget cannot be found yet.
    """
    settings = context.settings
    default = math.ceil(1.2 * tokens_per_step / settings.world)
    tokens, saved = settings.token_budget or default, settings.byte_budget
    if not settings.auto:
        return Budgets(tokens, saved)
    memory = context.step_memory()
    capacity = int((1 - HEADROOM) * (context.capacity or 0))
    if "token_budget" in settings.auto:
        tokens = _most_tokens(context, memory, capacity)
        longest = min(tokens_per_step, max(lengths, default=1))
        useful = max(default, -(-longest // settings.sp_max))
        tokens = min(tokens, useful if "byte_budget" in settings.auto else tokens_per_step)
    if "byte_budget" in settings.auto:
        saved = _most_saved(context, memory, capacity, tokens)
    return Budgets(tokens, saved)


def _most_tokens(context: Context, memory: StepMemory, capacity: int) -> int:
    """Of a rank, as much of them saved as the byte budget has."""
    saved = context.settings.byte_budget // saved_row_bytes(context.settings.shape)
    most = _largest(lambda n: most_bytes(memory, _counts(context, n, min(n, saved))) <= capacity, MOST_TOKENS)
    if most == 0:
        raise ValueError(_too_small(memory, context, capacity))
    return most


def _most_saved(context: Context, memory: StepMemory, capacity: int, tokens: int) -> int:
    """Bytes of a layer, beside so many tokens: at most all of them."""
    if memory.checkpointed == 0:
        raise ValueError(
            "byte_budget: 'auto' saves nothing without checkpointing; call "
            "model.gradient_checkpointing_enable({'use_reentrant': False}) before nsp.PlannedSteps, or give 0"
        )
    rows = _largest(lambda n: most_bytes(memory, _counts(context, tokens, n)) <= capacity, tokens)
    return rows * saved_row_bytes(context.settings.shape)


def check_fits(memory: StepMemory, capacity: int, step: int, plan: Plan) -> None:
    """RuntimeError, the same on all ranks, when some rank of the plan would need more than its device has."""
    fullest = plan_peak(memory, plan)
    if fullest is not None and fullest.total > capacity:
        raise RuntimeError(_too_much(step, fullest, capacity))


def _too_much(step: int, peak: Peak, capacity: int) -> str:
    saved = peak.kinds.get("saved attention output", 0)
    remedy = "lower token_budget" + (" or byte_budget" if saved else "")
    return (
        f"step {step} does not fit: rank {peak.rank} holds {peak.tokens} tokens in round {peak.round} and "
        f"needs {peak}, but {format_bytes(capacity)} are there; {remedy}, or checkpoint more layers"
    )


def _too_small(memory: StepMemory, context: Context, capacity: int) -> str:
    need = most_bytes(memory, _counts(context, 1, 0))
    return (
        f"token_budget: 'auto' finds no room: one token needs {format_bytes(need)} with the model's state "
        f"of {format_bytes(memory.model.state)}, but {format_bytes(capacity)} may be used; shard over more "
        "ranks, or keep fewer optimizer states"
    )


def _counts(context: Context, tokens: int, saved: int) -> tuple[int, ...]:
    """The dearest rank with so many tokens: nearly all in groups, where each row exists twice."""
    settings = context.settings
    exchanged = tokens if settings.sp_max > 1 else 0
    kv_heads = settings.shape["kv_heads"]
    heads = max(
        max(kv_heads, inner) * (degree // inner if backend in ("gather", "usp-gather") else 1)
        for degree, backend, inner in settings.ways
    )
    counts = {
        "tokens": tokens,
        "read": tokens,
        "exchanged": exchanged,
        "exchanged_heads": exchanged * heads,
        "launched": tokens,
        "saved": saved,
        "offloaded": min(tokens - saved, settings.host_budget // output_row_bytes(settings.shape)),
    }
    return tuple(counts.get(name, 0) for name in COUNTS)


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest n up to `most` that fits, where all below it do; 0 if none does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
