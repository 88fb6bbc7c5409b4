"""`nsp.loader`: reads and compares plan hashes ahead on a thread, from plans that are made further ahead on
threads of their own, while the device works.

A failure on the thread is raised where its step would be taken. State is one integer: the next step.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import torch

from nsp.agreement import Agreement, Entry, Stopped
from nsp.data import PlannedSteps
from nsp.plans_ahead import PlansAhead
from nsp.step import Step

REMEDY = "give all ranks the same dataset, seed, epoch, start and settings"


class Loader:
    """Iterates the steps of one epoch from `start`; all ranks iterate alike. After the last step it starts at
    0 again.

    RuntimeError at the step concerned: ranks disagree on a plan (they are named), no model is attached, or
    the rows of the step before were not run through an attached model.
    """

    def __init__(self, steps: PlannedSteps, start: int = 0, prefetch: int = 2) -> None:
        if prefetch < 1:
            raise ValueError(
                f"prefetch: {prefetch} is not positive; give the number of steps to prepare ahead"
            )
        self.steps, self.prefetch, self._next = steps, prefetch, start
        self._check_start(start)

    def __len__(self) -> int:
        """Steps still to come in this epoch."""
        return len(self.steps) - self._next

    def state_dict(self) -> dict[str, int]:
        return {"next": self._next, "epoch": self.steps.epoch, "seed": self.steps.seed}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """ValueError: the state of another seed, or past the end."""
        if state["seed"] != self.steps.seed:
            raise ValueError(
                f"seed: the state was saved with {state['seed']}, the steps have {self.steps.seed}; "
                f"use the same"
            )
        self.steps.set_epoch(state["epoch"])
        self._check_start(state["next"])
        self._next = state["next"]

    def __iter__(self) -> Iterator[Step]:
        context = self.steps.context
        if not context.attached:
            raise RuntimeError(
                "loader: no model is attached to this context; call nsp.attach(model, ctx) first"
            )
        ahead = _Ahead(self.steps, self._next, self.prefetch, context.agreement("steps", REMEDY))
        taken: Step | None = None
        try:
            while True:
                if taken is not None:
                    _check_executed(taken)
                step = ahead.take()
                if step is None:
                    self._next = 0
                    return
                self._next = step.index + 1
                context.world.begin_step(step.index)
                taken = step.to(context.device)
                yield taken
        finally:
            ahead.close()

    def _check_start(self, start: int) -> None:
        if not 0 <= start <= len(self.steps):
            raise ValueError(f"start: {start} is not in 0 ... {len(self.steps)}, the steps of an epoch")


def loader(steps: PlannedSteps, start: int = 0, prefetch: int = 2) -> Loader:
    """`Loader(steps, start, prefetch)`."""
    return Loader(steps, start, prefetch)


class _Ahead:
    """The thread and its bounded queue of steps, exceptions, or None at the end."""

    def __init__(self, steps: PlannedSteps, start: int, prefetch: int, agreement: Agreement) -> None:
        self._queue: queue.Queue[Step | BaseException | None] = queue.Queue(prefetch)
        self._stop: Event = agreement.stop
        self._plans = PlansAhead(steps, start)
        self._thread = Thread(
            target=self._work, args=(steps, start, agreement), name="nsp-loader", daemon=True
        )
        self._thread.start()

    def take(self) -> Step | None:
        item = self._queue.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        self._stop.set()
        self._plans.close()
        while self._thread.is_alive():
            try:
                self._queue.get_nowait()  # a put that waits for room sees the stop
            except queue.Empty:
                self._thread.join(0.05)

    def _work(self, steps: PlannedSteps, start: int, agreement: Agreement) -> None:
        cuda = steps.context.device.type == "cuda"
        try:
            if cuda:
                torch.cuda.set_device(steps.context.device)  # a thread's own
            for k in range(start, len(steps)):
                step = _agreed(steps, k, self._plans, agreement)
                if not self._put(step.pinned() if cuda else step):
                    return
            agreement.compare(Entry({"step": "the end"}))
            self._put(None)
        except Stopped:
            return
        except BaseException as error:  # belongs to the thread that takes the step
            self._put(error)

    def _put(self, item: Step | BaseException | None) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False


def _agreed(steps: PlannedSteps, k: int, plans: PlansAhead, agreement: Agreement) -> Step:
    """Step k once all ranks are known to have the same one; fills in or checks the number of targets."""
    try:
        step = steps.step(k, plans.take())
        entry = Entry(steps.fingerprint(step), sum(row.targets for row in step.rounds))
    except Exception as error:
        if agreement.stop.is_set():  # the plans were closed under it
            raise Stopped from error
        agreement.compare(Entry({}, failure=f"{type(error).__name__}: {error}"))
        raise
    targets = agreement.compare(entry)
    if step.targets is None:
        return step.with_targets(targets)
    if step.targets != targets:
        raise RuntimeError(
            f"step {k}: dataset.targets promise {step.targets} labelled tokens but the labels read "
            f"hold {targets}; "
            "correct targets (the first token of a sample is never one), or leave them out and "
            "set masked = True"
        )
    return step


def _check_executed(step: Step) -> None:
    """A model that ignores the plan would have trained on slices as if they were whole sequences."""
    plans: list[Any] = [row.plan for row in step.rounds]
    if plans and plans[0].schedule.attention_calls == 0:
        raise RuntimeError(
            f"step {step.index}: its rows were not run through an attached model; call "
            f"model(**row.inputs) with the model "
            "given to nsp.attach"
        )
