"""tools/check_layers.py: it passes on this repository and fails on each kind of fault."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(root: pathlib.Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "tools/check_layers.py"), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.fixture
def house(tmp_path: pathlib.Path) -> pathlib.Path:
    """Three layers: base; plan on base; exec on plan, with torch."""
    write(tmp_path, "base/CMakeLists.txt", "nsp_layer(base SOURCES a.cpp)")
    write(tmp_path, "base/a.cpp", "#include <vector>\n")
    write(tmp_path, "plan/CMakeLists.txt", "# nsp::exec\nnsp_layer(plan DEPENDS nsp::base)")
    write(tmp_path, "plan/a.cpp", '#include "nsp/base/a.h"\n#include "nsp/plan/a.h"\n')
    write(tmp_path, "exec/CMakeLists.txt", "nsp_layer(exec DEPENDS nsp::plan)")
    write(tmp_path, "exec/a.cpp", '#include <torch/library.h>\n#include "nsp/plan/a.h"\n')
    return tmp_path


def write(root: pathlib.Path, name: str, text: str) -> None:
    path = root / "nsp" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_this_repository_is_sound() -> None:
    code, out = run(ROOT)
    assert code == 0, out
    assert "layers ok" in out


def test_a_sound_house_passes(house: pathlib.Path) -> None:
    assert run(house) == (0, "3 layers ok\n")


def test_no_layers_is_a_fault(tmp_path: pathlib.Path) -> None:
    code, out = run(tmp_path)
    assert code == 1
    assert "no layers" in out


@pytest.mark.parametrize(
    "include",
    ["#include <torch/torch.h>", '#include "ATen/ATen.h"', "# include<c10/util/Half.h>"],
)
@pytest.mark.parametrize("layer", ["base", "plan"])
def test_torch_above_attention_is_a_fault(house: pathlib.Path, layer: str, include: str) -> None:
    write(house, f"{layer}/deep/b.h", f"#pragma once\n{include}\n")
    code, out = run(house)
    assert code == 1
    assert f"nsp/{layer}/deep/b.h: layer '{layer}' may not know torch or CUDA" in out


def test_an_include_that_depends_does_not_name_is_a_fault(house: pathlib.Path) -> None:
    write(house, "base/a.cpp", '#include "nsp/plan/a.h"\n')
    code, out = run(house)
    assert code == 1
    assert "nsp/base/a.cpp: layer 'base' may not include 'plan'" in out


def test_a_torch_free_layer_may_not_depend_on_the_executor(house: pathlib.Path) -> None:
    write(house, "plan/CMakeLists.txt", "nsp_layer(plan DEPENDS nsp::base nsp::exec)")
    code, out = run(house)
    assert code == 1
    assert "layer 'plan' may not depend on 'exec'" in out


def test_sources_without_a_layer_are_a_fault(house: pathlib.Path) -> None:
    write(house, "stray/a.cpp", "int a;\n")
    code, out = run(house)
    assert code == 1
    assert "nsp/stray: has sources but no CMakeLists.txt" in out
