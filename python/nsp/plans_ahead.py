"""Plans of coming steps, made on threads of `nsp._core` that need no interpreter lock."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from nsp._native import core
from nsp.planning import Plan, fitting

if TYPE_CHECKING:
    from nsp.data import PlannedSteps


class PlansAhead:
    """The plans of steps `start`, `start` + 1, ... to the end of the epoch, in order, each equal to
    `steps.plan(k)`. One thread takes; any thread may close.

    ahead: batches in planning beyond the one taken. threads: that plan at a time.
    """

    def __init__(self, steps: PlannedSteps, start: int, ahead: int = 3, threads: int = 1) -> None:
        self._steps, self._next, self._ahead, self._threads = steps, start, ahead, threads
        self._epoch = steps.epoch
        self._coming: Iterator[int] = iter(range(start, len(steps)))
        self._queue: Any = None
        self._closed = False

    def take(self) -> Plan:
        """The next step's plan; waits for it. RuntimeError: nothing fits it, or closed meanwhile."""
        if self._queue is None:  # here, so that a fault is met by who takes
            self._open()
        self._push()
        k, self._next = self._next, self._next + 1
        made = fitting(k, Plan.from_json(*self._queue.take()))
        if self._steps.epoch != self._epoch:
            raise RuntimeError(
                f"step {k}: set_epoch({self._steps.epoch}) was called while epoch {self._epoch} is loaded; "
                "end its loader first"
            )
        return made

    def close(self) -> None:
        """Drops what is not planned yet; wakes a waiting `take`."""
        self._closed = True
        if self._queue is not None:
            self._queue.close()

    def __enter__(self) -> PlansAhead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _push(self) -> None:
        k = next(self._coming, None)
        if k is not None:
            self._queue.push(self._steps.lengths(k))

    def _open(self) -> None:
        self._queue = core().PlanQueue(self._threads, self._ahead + 1, **self._steps.request)
        if self._closed:  # close() may have come before there was a queue to close
            self._queue.close()
        for _ in range(self._ahead):
            self._push()
