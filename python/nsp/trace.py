"""Profiler traces of all ranks as one file for Perfetto (ui.perfetto.dev) or chrome://tracing.

`StepTrace` records some steps of a rank into FOLDER/rank-R.json.gz; `merge` joins the ranks' files into
FOLDER/trace.json.gz, one process a rank. `python -m nsp.trace FOLDER` merges files that were collected from
several hosts. NSP's own ranges are named "nsp d4 ulysses prologue fwd": degree, backend, phase, pass ("nsp d4
ulysses short prologue fwd": of the short wave of a level that the schedule cuts).
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

MERGED = "trace.json.gz"


class StepTrace:
    """Records steps [begin, end) of this rank; rank 0 merges at the end. folder None: does nothing.

    Call `before` and `after` around each step on every rank.
    """

    def __init__(self, folder: str | None, begin: int, end: int) -> None:
        self.folder = Path(folder) if folder is not None else None
        self.begin, self.end = begin, end
        self._profiler: Any = None

    def before(self, step: int) -> None:
        if self.folder is not None and step == self.begin:
            activities = [torch.profiler.ProfilerActivity.CPU]
            if torch.cuda.is_available():
                activities.append(torch.profiler.ProfilerActivity.CUDA)
            self._profiler = torch.profiler.profile(activities=activities)
            self._profiler.start()

    def after(self, step: int, last: int) -> None:
        """last: index of the run's last step. Collective at the end of the recording."""
        if self._profiler is None or step != min(self.end - 1, last):
            return
        assert self.folder is not None
        self._profiler.stop()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._profiler.export_chrome_trace(str(self.folder / f"rank-{dist.get_rank()}.json.gz"))
        self._profiler = None
        dist.barrier()
        if dist.get_rank() == 0:
            print(merge(self.folder, dist.get_world_size()), flush=True)


def merge(folder: Path, world: int | None = None) -> str:
    """Writes FOLDER/trace.json.gz from FOLDER/rank-*.json.gz; what was done, in one sentence. Times are those
    of the ranks' clocks. world: ranks of the run; an older run's files of others are left out. ValueError: no
    such file.
    """
    files = {int(path.name[5:].split(".")[0]): path for path in folder.glob("rank-*.json.gz")}
    files = {rank: path for rank, path in files.items() if world is None or rank < world}
    if not files:
        raise ValueError(f"folder: {folder} holds no rank-*.json.gz; record with nsp.train --trace {folder}")
    base: int | None = None
    events: list[dict[str, Any]] = []
    for rank in sorted(files):
        with gzip.open(files[rank], "rt", encoding="utf-8") as file:
            trace = json.load(file)
        start = int(trace.get("baseTimeNanoseconds", 0))
        base = start if base is None else base
        events.extend(_events(trace["traceEvents"], rank, (start - base) / 1000))
    with gzip.open(folder / MERGED, "wt", encoding="utf-8") as file:
        json.dump({"traceEvents": events, "baseTimeNanoseconds": base}, file)
    missing = [] if world is None else sorted(set(range(world)) - files.keys())
    rest = f"; not here: ranks {missing}, copy their files and run python -m nsp.trace {folder}"
    return f"trace: {folder / MERGED}, {len(files)} ranks{rest if missing else ''}"


def _events(events: list[dict[str, Any]], rank: int, shift: float) -> Iterator[dict[str, Any]]:
    """One rank's events under one process. shift: microseconds to the first rank's zero."""
    yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
    yield {"ph": "M", "name": "process_sort_index", "pid": rank, "args": {"sort_index": rank}}
    for event in events:
        if event.get("ph") == "M" and str(event.get("name", "")).startswith("process_"):
            continue
        changed = {**event, "pid": rank}
        if "ts" in event:
            changed["ts"] = float(event["ts"]) + shift
        if "id" in event:  # arrows from launch to kernel: unique over the ranks
            changed["id"] = f"{rank}.{event['id']}"
        yield changed


def main(arguments: Sequence[str] | None = None) -> int:
    """0: merged. 2: nothing to merge."""
    parser = argparse.ArgumentParser(prog="nsp.trace", description="Merge the ranks' profiler traces.")
    parser.add_argument("folder", type=Path, help="holds rank-*.json.gz; trace.json.gz is written there")
    try:
        print(merge(parser.parse_args(arguments).folder))
    except ValueError as error:
        print(f"nsp.trace: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
