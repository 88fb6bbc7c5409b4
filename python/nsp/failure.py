"""A rank that fails tells the others before they wait for it; what Python can know of that.

Covered without a word in user code: an exception that nobody catches (`sys.excepthook`, after the traceback),
one that passes `Context.close()`, one that leaves an attention pass (the watchdog sees it), and a process
that ends before `close()` (`atexit`). A killed process is missed by its neighbour's watchdog, and by gloo at
once.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from nsp._native import execution

if TYPE_CHECKING:
    from nsp.context import Context

_watched: weakref.WeakSet[Context] = weakref.WeakSet()
_process = os.getpid()  # a forked child has none of the threads
_before = sys.excepthook


def watch(context: Context) -> None:
    """Reports this process' failure and end for the context, until it is closed."""
    global _before
    if sys.excepthook is not _uncaught:  # what others installed since runs first
        _before, sys.excepthook = sys.excepthook, _uncaught
    _watched.add(context)


def report(context: Context, error: BaseException) -> str:
    """Tells the other ranks; the sentence about the first failure of any of them, which may not be this."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    sentence: str = context.world.report(text[:1000])
    return sentence


def on_its_way() -> BaseException | None:
    """The exception that is handled now; none for `sys.exit()` after the work is done."""
    error = sys.exc_info()[1]
    done = isinstance(error, SystemExit) and error.code in (None, 0)
    return None if done else error


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _before(kind, error, trace)
    for context in _open():
        first = report(context, error)
        me = f"rank {context.rank} of {context.world_size}"
        if first.startswith(me):
            print(f"nsp: {first}", file=sys.stderr, flush=True)
            _tell_torchrun(first)
        else:
            place = context.world.place()
            print(f"nsp: {me} ends in {place}, because {first}", file=sys.stderr, flush=True)


def _tell_torchrun(message: str) -> None:
    """Its report shows this file of the rank that failed first."""
    name = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if name is not None and not Path(name).exists():
        execution().write_error_file(name, message)


@atexit.register
def _leave() -> None:
    for context in _open():
        context.world.unwatch(done=False)


def _open() -> list[Context]:
    return [c for c in _watched if c.world is not None] if os.getpid() == _process else []
