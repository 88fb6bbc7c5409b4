"""What travels with a row through `model(..., nsp_plan=row_plan)` to the attention function and the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nsp.context import Context


class RowPlan:
    """One round of one compiled plan. A plain class on purpose: FSDP2 walks tuples, lists and dicts of
    inputs.

    targets: labelled tokens of the whole step (all ranks, all rounds); None until a masked step's count is
    known.
    """

    __slots__ = ("context", "round", "schedule", "targets")

    def __init__(self, context: Context, schedule: Any, round: int, targets: int | None) -> None:
        self.context, self.schedule, self.round, self.targets = context, schedule, round, targets

    def __repr__(self) -> str:
        return f"RowPlan(round={self.round}, targets={self.targets})"

    def __deepcopy__(self, memo: dict[int, Any]) -> RowPlan:
        return self  # a handle: copies would free the same schedule twice
