"""The main job on a small corpus: it learns, and says what it did."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from launch import torchrun

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")

from nsp.trace import main, merge  # noqa: E402  torch is not everywhere

OPTIONS = [
    "--steps",
    "8",
    "--tokens-per-step",
    "1024",
    "--max-length",
    "600",
    "--hidden",
    "32",
    "--head-dim",
    "8",
    "--experts",
    "4",
    "--lr",
    "1e-2",
]

AUTO = ["--byte-budget", "auto", "--device-bytes", "64MiB"]


@pytest.mark.parametrize("planner", ["nsp", "static:2"])
def test_two_ranks_learn_a_folder(planner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for i in range(40):
        (texts / f"{i}.txt").write_text("a long tail of words " * (1 + 40 // (i + 1)))
    monkeypatch.chdir(tmp_path)
    more = {
        "static:2": ["--trace", "traced", "--trace-steps", "2:4"],
        "nsp": ["--backends", "all", "--checkpointing", *AUTO],
    }[planner]
    done = torchrun(
        2, "-m", "nsp.train", "--corpus", str(texts), "--planner", planner, "--name", "one", *OPTIONS, *more
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for line in (tmp_path / "runs/one/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(8))
    assert lines[-1]["loss"] < 0.8 * lines[0]["loss"]
    assert all(line["tokens"] <= 1024 and line["bound"] <= line["predicted"] for line in lines)
    assert len([line for line in done.stdout.splitlines() if line.startswith("step ")]) == 8
    if planner == "static:2":
        assert all(set(line["degrees"]) == {"2"} for line in lines)
        check_trace(tmp_path / "traced" / "trace.json.gz")
    assert "exchange buffers up to" in done.stdout
    assert ("saved attention output up to" in done.stdout) == (planner == "nsp")
    report, line = done.stdout.splitlines()[-2:]
    assert report.startswith("peak memory of rank ")
    found = json.loads(line)["memory"]
    assert found["measured"] is None
    assert (found["measured_saved"] > 0) == (planner == "nsp")
    assert sum(found["kinds"].values()) == found["predicted"]


def check_trace(path: Path) -> None:
    """Both ranks, and of each the ranges of both passes of the level, inside its recorded steps."""
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert named == {0: "rank 0", 1: "rank 1"}
    for rank in named:
        ranges = [e["name"] for e in events if e["pid"] == rank and e["name"].startswith("nsp d2 ulysses ")]
        for phase in ("prologue", "compute", "epilogue"):
            forward, backward = (ranges.count(f"nsp d2 ulysses {phase} {way}") for way in ("fwd", "bwd"))
            assert forward == backward > 0
            assert forward % (2 * 4) == 0  # steps 2 and 3, 4 layers


def test_merged_ranks_share_one_clock(tmp_path: Path) -> None:
    for rank, base in ((0, 5_000_000), (3, 5_002_000)):
        event = {"ph": "X", "name": "work", "pid": 99, "tid": 1, "ts": 10.0, "dur": 1.0, "id": 7}
        other = {"ph": "M", "name": "process_name", "pid": 99, "args": {"name": "python"}}
        with gzip.open(tmp_path / f"rank-{rank}.json.gz", "wt") as file:
            json.dump({"traceEvents": [other, event], "baseTimeNanoseconds": base}, file)
    assert "not here: ranks [1, 2]" in merge(tmp_path, 4)
    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        found = {e["pid"]: e for e in json.load(file)["traceEvents"] if e["name"] == "work"}
    assert {rank: e["ts"] for rank, e in found.items()} == {0: 10.0, 3: 12.0}
    assert found[0]["id"] != found[3]["id"]
    assert "1 ranks; not here: ranks [1]" in merge(tmp_path, 2)  # rank 3 is of a larger run


def test_merging_nothing_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "holds no rank-*.json.gz" in capsys.readouterr().err
