"""What each process of a launch runs: all cases of its world size in turn; rank 0 writes results as JSON."""

from __future__ import annotations

import json
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import case_budgets
import case_compile
import case_misc
import case_parity
import case_stash
import case_windows
import torch
import torch.distributed as dist


def main(out: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    world, rank = dist.get_world_size(), dist.get_rank()
    results = {}
    modules = (case_parity, case_misc, case_windows, case_compile, case_stash, case_budgets)
    for name, case in [item for module in modules for item in module.cases(world).items()]:
        error, value = "", None
        try:
            value = case()
        except Exception:
            error = f"rank {rank}: {traceback.format_exc()}"
            print(f"{name}: {error}", file=sys.stderr, flush=True)  # the others may be waiting for this rank
        errors: list[str] = [""] * world
        dist.all_gather_object(errors, error)
        results[name] = {"error": "\n".join(filter(None, errors)), "value": value}
        if results[name]["error"]:
            break  # ranks may be out of step
    if rank == 0:
        Path(out).write_text(json.dumps(results))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
