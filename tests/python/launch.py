"""Runs the cases of one world size in one torchrun launch (importing torch and transformers is what
costs).
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIMIT_SECONDS = 600


def torchrun(world: int, *command: str, timeout: float = LIMIT_SECONDS) -> subprocess.CompletedProcess[str]:
    """One host, `world` processes, one thread each, a free port."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": search_path()}
    return subprocess.run(
        [*launcher, *command], capture_output=True, text=True, timeout=timeout, env=environment, check=False
    )


@functools.cache
def results(world: int) -> dict[str, Any]:
    """What each case of this world size returned: {name: {"error": "" or a traceback, "value": ...}}."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results.json")
        done = torchrun(world, str(HERE / "ranks.py"), str(out))
        if not out.exists():
            raise AssertionError(
                f"world {world} wrote no results:\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
            )
        found: dict[str, Any] = json.loads(out.read_text())
    return found


def value(world: int, name: str) -> Any:
    """The value of one case; AssertionError with its traceback when it failed on any rank."""
    result = results(world)[name]
    assert not result["error"], f"world {world}, {name}:\n{result['error']}"
    return result["value"]


def search_path() -> str:
    """The tests, and where nsp was found, absolute: launches run in other folders."""
    found = importlib.util.find_spec("nsp")
    assert found is not None
    assert found.origin is not None
    return os.pathsep.join([str(HERE), str(Path(found.origin).resolve().parents[1])])
