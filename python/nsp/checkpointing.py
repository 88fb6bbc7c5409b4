"""Recomputation by the plan's marks: what a checkpointed layer keeps of its attention.

torch's non-reentrant checkpointing runs a layer twice. Both runs enter the layer's stash, the first to fill
it with the outputs that the plan marks, the second to take them instead of attending again. The stash lives
as long as the autograd graph that may need the second run; nothing is kept per process or model.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import torch

from nsp._native import execution
from nsp.row_plan import RowPlan

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class _Entered:
    """A context of one run of a region; entered again when the region is recomputed again."""

    def __init__(self, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self._enter, self._leave = enter, leave

    def __enter__(self) -> None:
        self._enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()


class _Both:
    """Two contexts as one, the second inside the first; holds no state of its own."""

    def __init__(self, outer: AbstractContextManager[Any], inner: AbstractContextManager[Any]) -> None:
        self._outer, self._inner = outer, inner

    def __enter__(self) -> None:
        self._outer.__enter__()
        try:
            self._inner.__enter__()
        except BaseException:
            self._outer.__exit__(*sys.exc_info())
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return self._inner.__exit__(kind, error, trace)
        finally:
            self._outer.__exit__(kind, error, trace)


def checkpoint_contexts() -> Contexts:
    """The `context_fn` of a region that is checkpointed without the model's own switch:
    `torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False, context_fn=nsp.checkpoint_contexts)`.
    """
    stash = execution().Stash()
    return _Entered(stash.record, stash.leave), _Entered(stash.replay, stash.leave)


class Checkpoint:
    """A layer's checkpointing function, `torch.utils.checkpoint.checkpoint` with the user's arguments: adds
    the stash to calls whose plan marks something to save. The user's own contexts stay, inside of it.
    """

    def __init__(self, plain: Callable[..., Any]) -> None:
        self.plain = plain

    def __call__(self, run: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        row = {**getattr(run, "keywords", {}), **keywords}.get("nsp_plan")
        if not isinstance(row, RowPlan) or not row.saves:
            return self.plain(run, *args, **keywords)
        given = {**getattr(self.plain, "keywords", {}), **keywords}
        if given.get("use_reentrant", True):
            raise ValueError(
                "use_reentrant: True cannot keep what the plan marks; enable checkpointing with "
                "{'use_reentrant': False}, or plan with a byte budget of 0"
            )
        contexts = functools.partial(_contexts, given.get("context_fn"))
        return self.plain(run, *args, **{**keywords, "context_fn": contexts})


def insert_stashes(model: torch.nn.Module) -> None:
    """Into the checkpointing functions of the layers, whenever and however those were switched on: by
    `gradient_checkpointing_enable`, or by torch's `checkpoint_wrapper` (accelerate's way).
    """
    for module in model.modules():
        for name in ("_gradient_checkpointing_func", "checkpoint_fn"):
            plain = vars(module).get(name)
            if plain is not None and not isinstance(plain, Checkpoint):
                setattr(module, name, Checkpoint(plain))


def _contexts(own: Callable[[], Contexts] | None) -> Contexts:
    stash = checkpoint_contexts()
    if own is None:
        return stash
    mine = own()
    return _Both(stash[0], mine[0]), _Both(stash[1], mine[1])
