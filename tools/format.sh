#!/usr/bin/env bash
# Usage: format.sh PYTHON --check | --write
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
case ${2:-} in
  --check) cpp=(--dry-run -Werror) py=(--check) ;;
  --write) cpp=(-i) py=() ;;
  *) echo "usage: format.sh PYTHON --check | --write" >&2; exit 2 ;;
esac
bin=$(dirname "$(command -v "$python")")
find . \( -path './.*' -o -path ./build \) -prune -o \( -name '*.h' -o -name '*.cpp' \) -print0 |
  xargs -0 "$bin/clang-format" "${cpp[@]}"
"$python" -m ruff format --quiet "${py[@]}" .
