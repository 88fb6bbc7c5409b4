"""The benchmarks of all GPUs of a host, small, on CPU processes: what their lines hold. No time is judged."""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from launch import torchrun

pytest.importorskip("nsp._exec", reason="nsp._exec is not built")
pytest.importorskip("transformers", reason="transformers is not installed")

import nsp  # noqa: E402  not everywhere

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(autouse=True)
def cpu_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.syspath_prepend(str(BENCH))


def lines_of(script: str, file: Path, *options: str) -> list[dict[str, Any]]:
    """Of two ranks."""
    done = torchrun(2, str(BENCH / script), "--json", str(file), "--batches=1", "--rounds=1", *options)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_attention_measures_every_variant_of_a_batch_beside_nsp(tmp_path: Path) -> None:
    options = ("--settings=documents", "--document-tokens=96", "--variants=static ring,static usp")
    lines = lines_of("attention.py", tmp_path / "new" / "attention.jsonl", *options)
    plans = next(line["plans"] for line in lines if "plans" in line)
    assert "two hosts" in plans["static usp"]["why_not"]
    measured = [line for line in lines if "variant" in line]
    assert {line["variant"] for line in measured} == {"static ring", "nsp", "nsp serial", "alone"}
    batch = importlib.import_module("batches").document_batches(192, 1, 0)[0]
    for line in measured:
        per_length = {"forward": 2, "backward": 5, "both": 7}[line["direction"]] * 64 * 128
        flops = line["tflops_per_gpu"] * line["ms"] * 1e9 * 2  # of two ranks
        assert flops == pytest.approx(per_length * sum(n * n for n in batch), rel=1e-9)
        assert (line["over_nsp"] == 1) or line["variant"] != "nsp"
        assert ("exposed_ms" in line) == line["variant"].startswith("nsp")
    summaries = [line for line in lines if "summary" in line]
    assert [line["direction"] for line in summaries] == ["forward", "backward", "both"]
    assert all(line["exposed_ms"].keys() == {"nsp", "nsp serial"} for line in summaries)


def test_training_goes_on_without_the_planner_that_ran_out_of_memory(tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    earlier = [{"started": time.time()}, {"planner": "static:N", "rank": 1, "out_of_memory": "CUDA"}]
    file.write_text("".join(json.dumps(line) + "\n" for line in earlier))
    options = (
        "--again",
        "--max-length=256",
        "--traces=github",
        "--planners=static:N,static-tokens,nsp serial",
    )
    lines = lines_of("train.py", file, "--layers=1", *options)
    assert lines[:2] == earlier
    measured = {line["planner"]: line for line in lines if "step_ms" in line}
    assert measured.keys() == {"static-tokens", "nsp", "nsp serial"}
    mine = measured["nsp"]
    assert mine["over_nsp"] == 1
    for line in measured.values():
        assert line["loss"] == pytest.approx(mine["loss"], rel=1e-2)  # bfloat16
        assert line["predicted_ms"] > 0
        assert line["simulated_ms"] > 0
    assert next(line["over_nsp"].keys() for line in lines if "summary" in line) == measured.keys()


def test_documents_fill_a_batch_and_none_is_above_a_quarter_of_it() -> None:
    batches = importlib.import_module("batches")
    for tokens in (192, 65536):
        for batch in batches.document_batches(tokens, 3, seed=1):
            assert sum(batch) == tokens
            assert 1 <= min(batch) <= max(batch) <= tokens // 4
    assert batches.document_batches(65536, 2, seed=1) != batches.document_batches(65536, 2, seed=2)


def test_batches_of_the_second_maximum_length_hold_what_the_first_leaves_out() -> None:
    found = importlib.import_module("batches").long_batches(["github", "wikipedia"], [1024, 2048], 4096, 2)
    assert [(b.max_length, b.trace) for b in found[:4]] == [
        (1024, "github"), (1024, "wikipedia"), (2048, "github"), (2048, "wikipedia"),
    ]  # fmt: skip
    assert len(found) == 8
    for batch in found:
        assert sum(batch.lengths) <= 4096
        assert max(batch.lengths) <= batch.max_length
        assert max(batch.lengths) > 1024 or batch.max_length == 1024


def test_a_plan_that_two_planners_make_is_found_and_nsp_stands_for_it() -> None:
    variants = importlib.import_module("variants")
    plans = {name: nsp.plan([700, 650, 90], world=2, sp_max=2, planner=name) for name in ("static:2", "nsp")}
    plans["static:1"] = nsp.plan([700, 650, 90], world=2, sp_max=2, planner="static:1")
    same = {**plans, "again": plans["nsp"]}
    assert variants.first_alike(same)["again"] == "nsp"
    assert variants.first_alike(plans)["static:2"] == "static:2"


def test_the_launches_of_a_rank_are_those_of_its_plan() -> None:
    core, layers = importlib.import_module("nsp._native").core(), importlib.import_module("layers")
    given = [(0, 900, 0, 2), (1, 300, 0, 2), (2, 80, 0, 1), (3, 70, 0, 1), (4, 60, 1, 1)]
    plan = core.make_plan(2, 2, 2, 0, [given], "given", [[1, 1]], [[(2, 300)]])
    assert layers.launches(plan, 0) == [([900], 2), ([300], 2), ([80], 1), ([70], 1)]
    assert layers.launches(plan, 1) == [([900], 2), ([300], 2), ([60], 1)]
    ring = core.make_plan(2, 2, 2, 0, [[(0, 900, 0, 2, "ring", 1)]], "given")
    assert layers.launches(ring, 0) is None
