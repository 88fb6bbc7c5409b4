# Everything from a fresh clone: `make train` runs the main job, `make test` the tests.
# Each target makes what it needs; stamps under build/stamps keep a second call from doing work twice.
#
#   NSP_PYTHON=/path/to/python   use this interpreter as it is (no virtual environment, nothing downloaded by pip)
#   ARGS="--steps 2"             passed to `python -m nsp.train`
#   NPROC=8                      processes of `make train` (default: one a GPU, or 4 on a machine without GPUs)
#   GPUS=8, OUT=results          of `make bench-...`: ranks (default: one a GPU), and the folder of results (runs/bench)
#   JOBS=2                       parallel compile jobs (default: all cores)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.ONESHELL:

JOBS ?= $(shell nproc)
NPROC ?=
GPUS ?=
OUT ?= runs/bench
ARGS ?=
PYTHON := $(or $(NSP_PYTHON),.venv/bin/python)
BUILD := build/release
STAMPS := build/stamps

CXX_INPUTS := CMakeLists.txt pyproject.toml $(wildcard cmake/*) \
  $(shell find nsp python/src -type f -not -name '*.md' 2>/dev/null)
TEST_INPUTS := $(shell find tests -name '*.cpp' -o -name '*.h' -o -name CMakeLists.txt 2>/dev/null)

export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export OMP_NUM_THREADS ?= 1

.PHONY: help train test test-gpu bench-planner bench-attention bench-train install dev format lint clean FORCE

help: ## this list
	@echo "make <target>:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | column -t -s '|' 2>/dev/null \
	  || sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1: \2/p' Makefile

train: $(STAMPS)/installed ## set up, then train the small Qwen3-MoE with nested sequence parallelism
	@processes="$(NPROC)"
	[ -n "$$processes" ] || processes=$$($(PYTHON) -c 'import torch; print(torch.cuda.device_count() or 4)')
	WORLD_SIZE=$$processes $(PYTHON) -m nsp.train --check-only $(ARGS) || exit 2
	$(PYTHON) -m torch.distributed.run --standalone --nproc-per-node "$$processes" -m nsp.train $(ARGS)

test: $(STAMPS)/tests ## set up, then run every test that this machine can run
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)
	$(PYTHON) -m pytest $(PYTEST_ARGS)

test-gpu: $(STAMPS)/installed ## set up, then run the tests that need one or two GPUs
	@$(PYTHON) -m pytest -s tests/gpu $(PYTEST_ARGS)

# The quality page in docs/results, and planning time by ranks and sequences.
bench-planner: $(STAMPS)/installed $(STAMPS)/dev ## measure the planners on the traces, renew docs/results/planner.md
	@tools/fetch_deps.sh bench
	cmake -S . -B build/bench -DNSP_PYTHON_MODULES=OFF -DNSP_BENCH=ON -DPython_EXECUTABLE="$(PYTHON)" > /dev/null
	cmake --build build/bench -j $(JOBS) --target planner_benchmark
	$(PYTHON) bench/planner_quality.py $(ARGS)
	build/bench/bench/planner_benchmark tests/data/traces/flexsp_wikipedia.txt.gz \
	  --benchmark_min_time=0.05 --benchmark_out=build/planner_benchmark.json

# torchrun with one rank a GPU; results are JSON lines in OUT.
LAUNCH = gpus="$(GPUS)"; [ -n "$$gpus" ] || gpus=$$($(PYTHON) -c 'import torch; print(torch.cuda.device_count() or 2)'); \
  mkdir -p "$(OUT)"; $(PYTHON) -m torch.distributed.run --standalone --nproc-per-node "$$gpus"

bench-attention: $(STAMPS)/installed ## attention of one layer under every planner's plans, on all GPUs of this host
	@$(LAUNCH) bench/attention.py --json "$(OUT)/attention.jsonl" $(ARGS)

bench-train: $(STAMPS)/installed ## training steps under every planner's plans, on all GPUs of this host
	@file="$(OUT)/train.jsonl"
	rm -f "$$file"
	for again in "" --again --again --again; do  # a planner that runs out of memory is left out of the next try
	  { $(LAUNCH) bench/train.py --json "$$file" $(ARGS) $$again; } && exit 0
	  tail -n 1 "$$file" | grep -q out_of_memory || break
	done
	exit 1

install: $(STAMPS)/installed ## the C++ build and the package, without running anything

dev: $(STAMPS)/dev ## formatters and linters

format: $(STAMPS)/dev ## rewrite the sources in the project's format
	tools/format.sh $(PYTHON) --write

lint: $(STAMPS)/dev $(STAMPS)/deps ## formatter, linter, layer and type checks; TIDY=1 adds clang-tidy
	tools/lint.sh $(PYTHON)

clean: ## remove what was built (keeps .venv, .deps and runs)
	rm -rf build

# ---- what the targets stand on ----

# Which interpreter the build belongs to; another one starts the build afresh.
$(STAMPS)/python: FORCE
	@mkdir -p $(STAMPS)
	[ "$$(cat $@ 2>/dev/null)" = "$(PYTHON)" ] || { rm -rf $(STAMPS)/* $(BUILD); echo "$(PYTHON)" > $@; }

$(STAMPS)/tools: $(STAMPS)/python tools/check_tools.sh
	@tools/check_tools.sh
	touch $@

$(STAMPS)/deps: $(STAMPS)/tools tools/fetch_deps.sh
	@tools/fetch_deps.sh
	touch $@

$(STAMPS)/packages: $(STAMPS)/tools requirements.txt tools/make_venv.sh tools/check_modules.py
	@tools/make_venv.sh requirements.txt
	touch $@

$(STAMPS)/dev: $(STAMPS)/packages requirements-dev.txt
	@tools/make_venv.sh requirements-dev.txt
	touch $@

# The editable install maps module names, so only a change of the list of Python files counts, not an edit.
$(STAMPS)/names: $(STAMPS)/python FORCE
	@find python/nsp -type f -not -path '*/__pycache__/*' -not -name '*.so' | sort > $@.new
	cmp -s $@.new $@ || cp $@.new $@
	rm $@.new

$(STAMPS)/installed: $(STAMPS)/packages $(STAMPS)/deps $(STAMPS)/names $(CXX_INPUTS)
	@tools/install.sh $(PYTHON)
	touch $@

# The same build folder, now with tests; the installed package stays as it is.
$(STAMPS)/tests: $(STAMPS)/installed $(TEST_INPUTS)
	@echo "nsp: building the tests"
	cmake -S . -B $(BUILD) -DNSP_TESTS=ON > build/configure.log || { cat build/configure.log; exit 1; }
	cmake --build $(BUILD) -j $(JOBS)
	touch $@
