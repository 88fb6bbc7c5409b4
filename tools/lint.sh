#!/usr/bin/env bash
# Usage: lint.sh PYTHON [FILE.cpp...]
# Formatter, linters, layer rules and types; clang-tidy over the named files, or with TIDY=1 over all of the
# torch-free layers. A file takes 10 to 60 seconds: name those that change.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
shift
bin=$(dirname "$(command -v "$python")")

echo "nsp: format";  tools/format.sh "$python" --check
echo "nsp: ruff";    "$python" -m ruff check --quiet .
echo "nsp: layers";  "$python" tools/check_layers.py
echo "nsp: types";   "$python" -m mypy

[ $# -gt 0 ] || [ -n "${TIDY:-}" ] || exit 0
echo "nsp: clang-tidy"
build=build/lint
cmake -S . -B "$build" -DNSP_PYTHON_MODULES=OFF -DNSP_TESTS=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON > /dev/null
if [ $# -eq 0 ]; then
  mapfile -t files < <(find nsp/base nsp/workload nsp/cluster nsp/plan nsp/cost nsp/sim nsp/planner -name '*.cpp' | sort)
  set -- "${files[@]}"
else
  build=build/release
fi
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" "$bin/clang-tidy" --quiet -p "$build" 2> >(grep -v 'warnings\? generated' >&2 || true)
