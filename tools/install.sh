#!/usr/bin/env bash
# Usage: install.sh PYTHON
# Builds the C++ part in build/release and installs the package in place (Python files stay in the tree).
set -euo pipefail
cd "$(dirname "$0")/.."

echo "nsp: building and installing (some minutes at first; log in build/install.log)"
mkdir -p build
# --no-index: what the build needs is installed already, so no network is asked.
if ! "$1" -m pip install --verbose --no-index --no-build-isolation --no-deps --editable . > build/install.log 2>&1; then
  grep -E 'error|Error' build/install.log | head -20 >&2 || true
  tail -n 30 build/install.log >&2
  echo "nsp: the build failed; the whole log is build/install.log" >&2
  exit 1
fi
