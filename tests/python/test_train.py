"""The main job on a small corpus: it learns, and says what it did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launch import torchrun

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")

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


@pytest.mark.parametrize("planner", ["nsp", "static:2"])
def test_two_ranks_learn_a_folder(planner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for i in range(40):
        (texts / f"{i}.txt").write_text("a long tail of words " * (1 + 40 // (i + 1)))
    monkeypatch.chdir(tmp_path)
    done = torchrun(
        2, "-m", "nsp.train", "--corpus", str(texts), "--planner", planner, "--name", "one", *OPTIONS
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for line in (tmp_path / "runs/one/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(8))
    assert lines[-1]["loss"] < 0.8 * lines[0]["loss"]
    assert all(line["tokens"] <= 1024 and line["bound"] <= line["predicted"] for line in lines)
    assert len([line for line in done.stdout.splitlines() if line.startswith("step ")]) == 8
    if planner == "static:2":
        assert all(set(line["degrees"]) == {"2"} for line in lines)
