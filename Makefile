# Every target does its own set-up: a Python 3.11+, a Rust toolchain and a JDK 17+ are all it asks for.
# What is already done is remembered by stamp files in .venv, so a second run costs nothing.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

# Data to test and measure with is no part of the project; it is used where it lies beside it.
ifneq ($(wildcard ../shared/data/README.md),)
export TAMIS_DATA ?= $(abspath ../shared/data)
endif

KERNEL := $(shell find src -name '*.rs') Cargo.toml Cargo.lock pyproject.toml

ifdef UV
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
MAKE_VENV = $(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
DEVELOP := $(BIN)/maturin develop --uv
else
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Dependency groups need pip 25.1.
MAKE_VENV = $(PYTHON) -m venv $(VENV) && $(INSTALL) --upgrade 'pip>=25.1'
DEVELOP := $(BIN)/maturin develop
endif

# Most of the time tests wait for servers to start: files side by side, in their order. What a file's
# tests share is started once for each process.
PARALLEL := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: build demo test lint test-kernel test-python bench soak clean java programs

build: $(VENV)/.built

# Ends by itself; with KEEP=1, at Ctrl-C.
demo: build java
	@$(BIN)/python -m tamis.demo

test: lint test-kernel test-python

lint: build
	@echo '── ruff, mypy'
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@echo '── rustfmt, clippy'
	@cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
	@cargo fmt --check
	@cargo clippy --quiet --all-targets -- -D warnings
	@cargo clippy --quiet --all-targets --features python -- -D warnings

test-kernel:
	@echo '── cargo test'
	@cargo test --quiet

test-python: build java programs
	@echo '── pytest'
	@$(BIN)/python -m pytest $(PARALLEL)

bench: build java
	@$(BIN)/python -m benches suite
	@$(BIN)/python -m benches.path_sharing

# Any number of pairs, any seed and any number of kills for each source by hand: make soak PAIRS=1000000 SEED=7 KILLS=5
soak: build java
	@TAMIS_PAIRS=$(or $(PAIRS),10000000) TAMIS_SEED=$(or $(SEED),) \
		$(BIN)/python -m pytest tests/kernel/test_random.py
	@TAMIS_PAIRS=$(or $(PAIRS),1000000) TAMIS_SEED=$(or $(SEED),) \
		$(BIN)/python -m pytest tests/kernel/test_transform_random.py tests/kernel/test_transform_schema.py
	@TAMIS_SOAK=1 $(BIN)/python -m pytest -m soak
	@TAMIS_KILLS=$(or $(KILLS),100) $(BIN)/python -m pytest -s tests/faults/test_faults.py tests/faults/test_faults_kafka.py

clean:
	rm -rf $(VENV) target .cache

# Spark runs on Java; Maven brings Kafka and Spark's connector to it.
java:
	@for tool in java mvn; do command -v $$tool >/dev/null 2>&1 || missing=1; done; \
	if [ -n "$${missing:-}" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
			echo '── Java, Maven'; apt-get update -qq && apt-get install -y -qq default-jdk-headless maven >/dev/null; \
		else echo 'Java 17 or newer and Maven are needed: apt-get install default-jdk-headless maven' >&2; exit 1; fi; \
	fi

# The page is tested in a browser, webhooks with a certificate, the catalog in PostgreSQL too.
programs:
	@for tool in chromium openssl; do command -v $$tool >/dev/null 2>&1 || missing=1; done; \
	command -v initdb /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing=1; \
	if [ -n "$${missing:-}" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
			echo '── Chromium, OpenSSL, PostgreSQL'; apt-get update -qq && \
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium openssl postgresql >/dev/null; \
		else echo 'Chromium, OpenSSL and PostgreSQL are needed: apt-get install chromium openssl postgresql' >&2; exit 1; fi; \
	fi

$(BIN)/python:
	@echo '── $(VENV)'
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed (make PYTHON=…)" if sys.version_info < (3, 11) else 0)'
	@$(MAKE_VENV)

$(VENV)/.tools: pyproject.toml | $(BIN)/python
	@echo '── tools to build, lint, test and measure with'
	@$(INSTALL) --group dev
	@touch $@

$(VENV)/.built: $(KERNEL) $(VENV)/.tools
	@echo '── kernel, release build'
	@VIRTUAL_ENV=$(abspath $(VENV)) $(DEVELOP) --release --extras bench
	@touch $@
