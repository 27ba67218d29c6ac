# Each target sets up what it needs the first time and is fast afterwards.
#
#   make demo  [ARGS="--json"]      the main job: start the platform, train, evaluate, report
#   make test  [ARGS="-k name"]     all tests
#   make check                      format, lint, types, import directions
#   make bench [ONLY=sandbox]       benchmarks against their targets
#   make soak  [SHORT=1]            a loop under injected faults
#   make setup                      the virtual environment with everything
#   make clean                      stop the platform of this folder; remove all that make made
#
# PYTHON names the interpreter; ENGINE=gpu installs vLLM for NVIDIA GPUs.

PYTHON ?= python3.11
ENGINE ?= cpu
ARGS ?=
ONLY ?=
SHORT ?=

VENV := .venv
BIN := $(VENV)/bin
# Byte code is left to the first import: most of what is installed is never imported.
PIP := $(BIN)/python -m pip install -qq --no-compile --no-input --disable-pip-version-check
ENGINE_STAMP := $(VENV)/.engine-$(ENGINE)
RUN_STAMP := $(VENV)/.run-$(ENGINE)
DEV_STAMP := $(VENV)/.dev-$(ENGINE)

# Programs start in half the time where the byte code of what they import is kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check bench soak setup clean

help:
	@sed -n '3,11s/^#//p' Makefile

demo: $(RUN_STAMP)
	@$(BIN)/loopwright demo $(ARGS)

test: $(DEV_STAMP)
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 \
	  --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(DEV_STAMP)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports

bench: $(DEV_STAMP)
	@$(BIN)/python -m benchmarks $(ONLY)

soak: $(DEV_STAMP)
	@$(BIN)/python -m tests.soak $(if $(SHORT),--short)

setup: $(DEV_STAMP)

clean:
	@if [ -d .loopwright ] && [ -x $(BIN)/loopwright ]; then $(BIN)/loopwright down; fi
	rm -rf $(VENV) .loopwright build dist src/*.egg-info
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .coverage htmlcov

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	  echo "make: Python 3.11 is needed, and '$(PYTHON)' is not it. Install it" \
	    "(Debian 12: apt-get install python3 python3-venv)," \
	    "or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' has no venv module. Install it" \
	    "(Debian: apt-get install python3-venv)" >&2; exit 1; }
	@echo "Creating $(VENV) ..."
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

ifeq ($(ENGINE),gpu)
$(ENGINE_STAMP): requirements/engine-gpu.txt | $(BIN)/python
	@echo "Installing torch and vLLM for NVIDIA GPUs: about 10 GB ..."
	@$(PIP) -r requirements/engine-gpu.txt
	@touch $@
else
$(ENGINE_STAMP): requirements/torch.txt requirements/engine-cpu.txt | $(BIN)/python
	@echo "Installing torch and vLLM for CPUs: about 4 GB, some minutes ..."
	@$(PIP) -r requirements/torch.txt -c requirements/engine-cpu.txt
	@$(PIP) --no-deps -r requirements/engine-cpu.txt
	@touch $@
endif

$(RUN_STAMP): requirements/base.txt pyproject.toml $(ENGINE_STAMP)
	@echo "Installing the platform ..."
	@$(PIP) --no-deps -r requirements/base.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): requirements/dev.txt $(RUN_STAMP)
	@echo "Installing the developers' tools ..."
	@$(PIP) --no-deps -r requirements/dev.txt
	@touch $@
