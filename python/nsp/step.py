"""One optimizer step of one rank: rounds of rows, ready for `model(**row.inputs)`. Tensors are (1, T), T
tokens of the rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from nsp.loss import IGNORE
from nsp.planning import Plan
from nsp.row_plan import RowPlan


@dataclass(frozen=True)
class Row:
    """One round of this rank. `inputs` are the keywords of `model(...)`; `tokens` do not count a dummy
    token.
    """

    inputs: dict[str, Any]
    tokens: int

    @property
    def plan(self) -> RowPlan:
        row: RowPlan = self.inputs["nsp_plan"]
        return row

    @property
    def targets(self) -> int:
        """Labelled tokens of this row."""
        return int((self.inputs["shift_labels"] != IGNORE).sum())


@dataclass(frozen=True)
class Step:
    """One optimizer step. `samples[s]` is the dataset index of the plan's sequence s. targets: see
    `RowPlan`.
    """

    index: int
    rounds: tuple[Row, ...]
    plan: Plan
    samples: tuple[int, ...]
    targets: int | None

    def with_targets(self, targets: int) -> Step:
        """Fills in the count of a masked step."""
        for row in self.rounds:
            row.plan.targets = targets
        return replace(self, targets=targets)

    def pinned(self) -> Step:
        """In memory from which a device copies while the host goes on."""
        return self._moved(torch.Tensor.pin_memory)

    def to(self, device: torch.device) -> Step:
        """Does not wait for the device if the step is pinned."""
        return self._moved(lambda tensor: tensor.to(device, non_blocking=True))

    def _moved(self, move: Callable[[torch.Tensor], torch.Tensor]) -> Step:
        def moved(row: Row) -> Row:
            return replace(
                row, inputs={k: move(v) if torch.is_tensor(v) else v for k, v in row.inputs.items()}
            )

        return replace(self, rounds=tuple(moved(row) for row in self.rounds))
