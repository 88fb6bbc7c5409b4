"""What travels with a row through `model(..., nsp_plan=row_plan)` to the attention function and the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from nsp.context import Context


class RowPlan:
    """One round of one compiled plan. A plain class on purpose: FSDP2 walks tuples, lists and dicts of
    inputs, and `torch.compile` reads an object's integers without holding a graph to their values.

    handle: of the schedule, as the operator takes it.
    saves: whether the round marks attention that a checkpointed layer does not run again.
    targets: labelled tokens of the whole step (all ranks, all rounds); None until a masked step's count is
    known.
    """

    __slots__ = ("context", "handle", "round", "saves", "schedule", "targets")

    def __init__(self, context: Context, schedule: Any, round: int, targets: int | None) -> None:
        self.context, self.schedule, self.round, self.targets = context, schedule, round, targets
        self.handle: int = schedule.handle
        self.saves: bool = schedule.saves(round)

    def check_attached(self, module: torch.nn.Module) -> None:
        """ValueError unless `nsp.attach` gave this attention module to the plan's context."""
        if module not in self.context.modules:
            raise ValueError(
                "nsp_plan: this model is not attached to the plan's context; call nsp.attach(model, ctx)"
            )

    def __repr__(self) -> str:
        return f"RowPlan(round={self.round}, targets={self.targets})"

    def __deepcopy__(self, memo: dict[int, Any]) -> RowPlan:
        return self  # a handle: copies would free the same schedule twice
