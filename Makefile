# Pullback: one task a line, `make help` lists them.
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help setup up test test-long test-all test-torch story coverage lint format bench api ir lock clean

help: ## list the tasks
	@echo "Pullback: continuous benchmarking for gradients."
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
	@echo
	@echo "PULLBACK_PORT=8001 make up   another port;   DATABASE_URL=... make up   your own Postgres"

setup: $(STAMP) ## make .venv from requirements.lock, nothing else

# The stamp is newer than both files when the environment matches them, so a second `make up` installs nothing.
$(STAMP): requirements.lock pyproject.toml
	@deploy/setup.sh "$(PYTHON)"
	@touch $@

up: $(STAMP) ## start everything and measure this commit: http://127.0.0.1:8000
	@exec $(BIN)/pullback up

test: $(STAMP) ## what CI runs: all tests but the long ones, browser included
	@deploy/test.sh

test-long: $(STAMP) ## what takes too long for each change, and nothing else
	@deploy/test.sh -m long -o faulthandler_timeout=4000

test-all: $(STAMP) ## both in one run
	@deploy/test.sh -m "" -o faulthandler_timeout=4000

test-torch: $(STAMP) ## arrays on devices, over PyTorch for the CPU in an environment of its own; minutes
	@deploy/test-torch.sh -n 2

story: $(STAMP) ## thirty commits, built and measured by an agent, to one message about one of them: ten minutes
	PULLBACK_STORY=real $(BIN)/pytest tests/system/test_story.py -q -m "" -o faulthandler_timeout=4000

coverage: $(STAMP) ## the same, and which lines no test reaches
	@deploy/test.sh --coverage

lint: $(STAMP) ## ruff, mypy --strict, import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## format and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## the project's own speed claims, measured again
	$(BIN)/python -m benchmarks.tape_overhead
	$(BIN)/python -m benchmarks.seeds

api: $(STAMP) ## renew what is made from the API: its examples, its client, docs/api.md
	$(BIN)/python -m tools.api

ir: $(STAMP) ## renew the LLVM IR that is made of C (needs clang-19)
	$(BIN)/python -m tools.ir

lock: ## renew requirements.lock (needs uv)
	uv pip compile --quiet --universal --generate-hashes --no-annotate --python-version 3.11 \
		--fork-strategy fewest --extra runner --extra service --extra dev \
		--custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

clean: ## remove .venv, data and caches of this checkout
	@if [ -x $(BIN)/pullback ]; then $(BIN)/pullback down || true; fi
	rm -rf .venv .venv-torch .pullback .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis htmlcov .coverage*
