# Every target brings what it needs: on a fresh Debian machine with Python 3.11 and a JDK 17, `make demo` is enough.
#
#   make install | demo | test | test-fast | prove | mutations | lint | docs | bench | bench-NAME | lock | clean | help
#
# JSON=1 makes the demo print one JSON object; QUICK=1 makes a benchmark take a first look of at most three minutes, and
# PART=2 only its second part, where it has several. SEED=n gives tests their seed, MINUTES=n the time that `prove` has.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# A benchmark is a module of bench/ with a `main`; harness and weigh are what they share.
BENCHMARKS := $(filter-out __init__ harness weigh,$(basename $(notdir $(wildcard bench/*.py))))

# Two processes, groups of tests in the order of tests/conftest.py, one run with one closing line.
PYTEST := $(BIN)/python -m pytest --doctest-modules src examples/headrace_demo tests -n 2 --dist loadgroup --no-loadscope-reorder \
	$(if $(SEED),--hypothesis-seed $(SEED))

# Dozens of processes start: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test test-fast prove mutations set-up lint checks docs bench $(BENCHMARKS:%=bench-%) lock clean java jars classes redis wrk

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf 'make bench-NAME  %s\n' "one of: $(BENCHMARKS)"

install: $(READY) classes ## the command .venv/bin/headrace, and what makes it start quickly

demo: install ## the example project over a generated payment stream; JSON=1 for one JSON object
	@$(BIN)/headrace demo $(if $(JSON),--json)

test: ## everything once, Spark and a Kafka broker included; what is too dear fails
	@scripts/timed set-up $(MAKE) --no-print-directory set-up
	$(PYTEST) -m "not prove" --account build/test-report.json --budgets tests/budgets.toml \
		--least-tests tests/golden/frozen/number_of_tests.txt

test-fast: $(READY) redis ## what needs no JVM, in under a minute
	$(PYTEST) -m "not spark and not kafka and not prove"

prove: set-up ## what repeats at length, with new seeds until MINUTES are over; SEED for the first
	$(BIN)/python -m scripts.prove $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

set-up: $(READY) java jars classes redis

mutations: set-up ## break the code on purpose, and see that tests notice; SEED=n for 20 more that n chooses
	$(BIN)/python -m scripts.mutations $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)")

lint: $(READY) ## style, types, layers
	@scripts/timed lint $(MAKE) --no-print-directory checks

checks:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.house

docs: $(READY) ## write docs/reference from the code
	$(BIN)/python -m scripts.reference

bench: $(BENCHMARKS:%=bench-%) ## all benchmarks, each into bench/results/NAME.json

$(BENCHMARKS:%=bench-%): bench-%: $(READY) java
	$(BIN)/python -m bench.$* $(if $(QUICK),--quick) $(if $(PART),--part $(PART))

bench-serve: jars redis wrk

bench-score: jars wrk

lock: $(READY) ## pin every dependency of pyproject.toml with hashes; UPGRADE=1 for the newest of each
	$(BIN)/uv pip compile pyproject.toml --group dev --quiet $(if $(UPGRADE),--upgrade) --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --custom-compile-command "make lock" --output-file requirements.lock

clean: ## forget the environment and the caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

java:
	@scripts/apt-need openjdk-17-jre-headless sh -c '"$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version'

# The classes that Java has loaded are kept: every later start of Spark, of which tests have dozens, takes half as long.
classes: $(READY) java
	@$(BIN)/headrace prepare >/dev/null 2>&1

jars: $(READY) java
	@scripts/apt-need maven mvn --version
	@$(BIN)/headrace kafka jars >/dev/null

# Talk goes to stderr, so that stdout stays data (`make demo JSON=1 | jq`).
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is missing or older than 3.11." >&2; \
		  echo "hint: Name a newer one: make PYTHON=python3.12 ..." >&2; exit 3; }
	@scripts/apt-need python3-venv $(PYTHON) -c 'import ensurepip, venv'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >&2
	@scripts/timed environment scripts/install $(BIN)/python >&2
	@touch $@

redis:
	@scripts/apt-need redis-server redis-server --version

# Without it the benchmark has a slower client of its own.
wrk:
	-@scripts/apt-need wrk sh -c 'command -v wrk'
