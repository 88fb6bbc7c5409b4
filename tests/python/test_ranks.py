"""What several ranks do together, beside parity (the same launches)."""

from __future__ import annotations

import pytest
from launch import value

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize("case", ["other_seed", "other_settings"])
def test_a_rank_that_differs_is_named_on_every_rank(case: str) -> None:
    for text in value(2, case):
        assert text.startswith("RuntimeError: rank 1 disagrees"), text


def test_other_settings_name_the_field() -> None:
    assert all("sp_max is 1 on rank 1 and 2 elsewhere" in text for text in value(2, "other_settings"))


def test_a_failed_read_reaches_the_other_ranks() -> None:
    assert "rank 0 failed: OSError: disk on fire" in value(2, "reading_fails")[1]


def test_stored_targets_are_compared_with_the_labels() -> None:
    assert all("dataset.targets promise" in text for text in value(2, "wrong_targets"))


def test_a_loader_without_an_attached_model_raises() -> None:
    assert "call nsp.attach(model, ctx) first" in value(2, "no_model")


def test_rows_that_no_attached_model_ran_raise_at_the_next_step() -> None:
    assert "were not run through an attached model" in value(2, "unused_rows")


def test_llama_and_qwen3_with_tied_heads_equal_one_process() -> None:
    assert max(value(2, "dense_models").values()) <= 1e-10


def test_a_mesh_over_part_of_the_job_is_refused() -> None:
    assert value(2, "part_of_the_job").startswith("ValueError: mesh: it covers 1 of 2 ranks")


def test_each_sample_is_used_once_an_epoch_and_a_resume_is_exact() -> None:
    found = value(4, "epoch_and_resume")
    assert sorted(found["seen"]) == list(range(9))
    assert found["resumed"] == found["taken"][2]
    assert found["left"] == len(found["taken"]) - 2


def test_uniform_logits_give_the_logarithm_of_the_vocabulary() -> None:
    assert max(value(4, "uniform_logits").values()) <= 1e-12


def test_fp32_and_bf16_train() -> None:
    found = value(4, "narrow_types")
    assert found["torch.float32"]["loss"] < 1e-5
    assert found["torch.float32"]["grads"] < 1e-3
    assert found["torch.bfloat16"]["loss"] < 0.05
    assert found["torch.bfloat16"]["grads"] < 0.5


def test_activation_checkpointing_changes_nothing() -> None:
    found = value(4, "checkpointing")
    assert max(found.values()) <= 1e-10


def test_evaluation_and_num_items_give_the_same_loss() -> None:
    found = value(4, "evaluation_and_trainer")
    assert found["eval"] <= 1e-10
    assert found["trainer"] <= 1e-10
    assert found["logits"] == 0
    assert found["vocabulary"] == 61


def test_memory_stays_flat_over_random_plans() -> None:
    found = value(4, "random_plans")
    for early, late in zip(found["at 50"], found["at 200"], strict=True):
        assert late <= 1.05 * early, found
