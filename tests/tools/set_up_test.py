"""tools/check_tools.sh and fetch_deps.sh: what is missing is one sentence, what is there is left alone."""

import pathlib
import shutil
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
PLAIN = ["bash", "dirname", "env", "grep", "head", "printf", "sed", "sort"]
HEADERS = [
    "nlohmann/json.hpp",
    "CLI/CLI.hpp",
    "fmt/format.h",
    "xxhash.h",
    "zlib.h",
    "gtest/gtest.h",
]


def program(folder: pathlib.Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> pathlib.Path:
    """A PATH with fake tools that are new enough, and this interpreter."""
    for name in PLAIN:
        found = shutil.which(name)
        if found:
            (tmp_path / name).symlink_to(found)
    program(tmp_path, "g++", 'case $1 in --version) echo "Free Software Foundation";; *) echo 12.2.0;; esac')
    program(tmp_path, "cmake", "echo cmake version 3.25.1")
    program(tmp_path, "make", "")
    program(tmp_path, "python3", f'exec {sys.executable} "$@"')
    return tmp_path


def run(script: pathlib.Path, path: pathlib.Path, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [str(path / "bash"), str(script)],
        env={"PATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_complete_machine_passes_in_silence(machine: pathlib.Path) -> None:
    assert run(TOOLS / "check_tools.sh", machine, NSP_PYTHON=sys.executable) == (0, "")


@pytest.mark.parametrize(
    ("tool", "package"), [("g++", "g++"), ("cmake", "cmake"), ("make", "make"), ("python3", "python3-venv")]
)
def test_a_missing_tool_is_named_with_its_package(machine: pathlib.Path, tool: str, package: str) -> None:
    (machine / tool).unlink()
    code, out = run(TOOLS / "check_tools.sh", machine)
    assert code == 1
    assert out.count("\n") == 1
    assert tool in out
    assert "apt-get install" in out
    assert package in out


@pytest.mark.parametrize(
    ("tool", "old", "wanted"),
    [
        ("g++", 'case $1 in --version) echo "Free Software Foundation";; *) echo 9.4.0;; esac', "12"),
        ("cmake", "echo cmake version 3.9.6", "3.25"),
        ("python3", "echo 3.9", "3.10"),
    ],
)
def test_an_old_tool_is_named_with_both_versions(
    machine: pathlib.Path, tool: str, old: str, wanted: str
) -> None:
    program(machine, tool, old)
    code, out = run(TOOLS / "check_tools.sh", machine)
    assert code == 1
    assert out.count("\n") == 1
    assert "version" in out
    assert f"{wanted} or newer" in out


def test_a_wrong_nsp_python_is_named(machine: pathlib.Path) -> None:
    code, out = run(TOOLS / "check_tools.sh", machine, NSP_PYTHON="/no/such/python")
    assert code == 1
    assert out.startswith("nsp: NSP_PYTHON /no/such/python is not an interpreter")


def test_a_filled_deps_folder_is_left_alone(machine: pathlib.Path, tmp_path: pathlib.Path) -> None:
    clone = tmp_path / "clone"
    (clone / "tools").mkdir(parents=True)
    shutil.copy(TOOLS / "fetch_deps.sh", clone / "tools")
    library = clone / ".deps/usr/lib/any-linux-gnu/libgtest.a"
    for path in [clone / ".deps/usr/include" / name for name in HEADERS] + [library]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert run(clone / "tools/fetch_deps.sh", machine) == (0, "")
