#!/usr/bin/env bash
# Usage: make_venv.sh REQUIREMENTS
# Brings the packages of a requirements file into .venv. With NSP_PYTHON nothing is downloaded:
# that interpreter must have them already.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -n "${NSP_PYTHON:-}" ]; then
  exec "$NSP_PYTHON" tools/check_modules.py "$1" highsbox  # without: no planner flexsp
fi
if [ ! -x .venv/bin/python ]; then
  echo "nsp: making .venv"
  python3 -m venv .venv
fi
echo "nsp: packages of $1 (PyTorch is several gigabytes on the first call)"
.venv/bin/python -m pip install --quiet --requirement "$1"
