#!/usr/bin/env bash
# Says in one sentence which tool is missing and which Debian package brings it; starts nothing.
set -euo pipefail

fail() {
  echo "nsp: $1" >&2
  exit 1
}

# at_least <have> <want>: versions compared number by number.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }

cxx=${CXX:-g++}
command -v "$cxx" > /dev/null ||
  fail "the C++ compiler '$cxx' is missing; install it with: apt-get install g++ (12 or newer)"
if grep -qi 'free software foundation' <<< "$("$cxx" --version)"; then
  version=$("$cxx" -dumpfullversion -dumpversion)
  at_least "$version" 12 ||
    fail "$cxx is version $version, 12 or newer is needed; install it with: apt-get install g++-12, then set CXX=g++-12"
fi

command -v cmake > /dev/null || fail "cmake is missing; install it with: apt-get install cmake (3.25 or newer)"
version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
at_least "$version" 3.25 || fail "cmake is version $version, 3.25 or newer is needed; install it with: pip install cmake"

command -v make > /dev/null || command -v ninja > /dev/null ||
  fail "make is missing; install it with: apt-get install make"

python=${NSP_PYTHON:-python3}
if ! command -v "$python" > /dev/null; then
  [ -z "${NSP_PYTHON:-}" ] || fail "NSP_PYTHON $NSP_PYTHON is not an interpreter; set it to a Python 3.10 or newer"
  fail "python3 is missing; install it with: apt-get install python3 python3-venv python3-dev"
fi
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
at_least "$version" 3.10 ||
  fail "$python is version $version, 3.10 or newer is needed; set NSP_PYTHON or install a newer python3"
"$python" -c '
import pathlib, sys, sysconfig
sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())' ||
  fail "the headers of $python (Python.h) are missing; install them with: apt-get install python3-dev"
if [ -z "${NSP_PYTHON:-}" ]; then
  "$python" -c 'import ensurepip, venv' 2> /dev/null ||
    fail "$python cannot make virtual environments; install: apt-get install python3-venv"
fi
