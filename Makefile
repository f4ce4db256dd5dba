# Every target sets up what it needs: Python 3.11 or newer and a Rust toolchain have to be there. `make demo` needs
# Java 17 or newer as well, tests and benchmarks a few more programs; Debian's packages are installed where it may.
# Stamp files in .venv record each step that succeeded, so that a second run does nothing.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Data to test and measure with is no part of the project; it is used where it lies beside it.
ifneq ($(wildcard ../shared/data/README.md),)
export TAMIS_DATA ?= $(abspath ../shared/data)
endif

KERNEL := $(shell find src -name '*.rs') Cargo.toml Cargo.lock pyproject.toml

# uv installs in half the processor time of pip. pip's index and certificate, where set, are uv's as well.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
ifdef PIP_CERT
export SSL_CERT_FILE ?= $(PIP_CERT)
endif
UV := PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV="$(abspath $(VENV))" uv
# The versions that were tested, with the hashes of their files.
LOCK := requirements.lock
INSTALL := $(UV) pip install --quiet --constraints $(LOCK) --requirements pyproject.toml
DEVELOP := PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV="$(abspath $(VENV))" maturin develop --release

# Python's packages are installed while Rust compiles.
SET_UP := +@$(MAKE) --silent --no-print-directory --jobs=3

# The lowest PySpark that pyproject.toml allows; it hides the one of the environment.
LOWEST_SPARK := $(shell sed -n 's/^spark = .*pyspark\[sql\]>=\([0-9.]*\),.*/\1/p' pyproject.toml)
SPARK_FOLDER := $(VENV)/spark-$(LOWEST_SPARK)

# Most of the time tests wait for servers to start: files side by side, in their order. What a file's
# tests share is started once for each process.
PARALLEL := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: build demo wheel lock test lint test-kernel test-python bench soak clean java programs

build:
	$(SET_UP) $(VENV)/.built $(VENV)/.tools

# Ends by itself; with KEEP=1, at Ctrl-C; with NETWORK=1, six linked brokers. Installs nothing that only tests and benchmarks use.
demo:
	$(SET_UP) $(VENV)/.built java
	@$(BIN)/python -m tamis.demo

# A wheel for every Python from 3.11, and the sources, in dist/.
wheel: dist/.built

# Newer versions of all packages, as pyproject.toml allows. Their hashes are the same wherever they are fetched from.
lock: $(VENV)/.created
	@{ head -1 $(LOCK); $(UV) pip compile --quiet --upgrade pyproject.toml --universal --python-version 3.11 \
		--extra serve --extra bench --extra kafka --extra postgres --group dev --group build \
		--generate-hashes --no-emit-index-url --no-annotate --no-header; } >$(LOCK).new
	@mv $(LOCK).new $(LOCK)

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

test-python: build programs
	@echo '── pytest'
	@$(BIN)/python -m pytest $(PARALLEL)

bench: build programs
	@$(BIN)/python -m benches suite
	@$(BIN)/python -m benches.path_sharing

# Any number of pairs, any seed and any number of kills for each source by hand: make soak PAIRS=1000000 SEED=7 KILLS=5
soak: SEED := $(or $(SEED),$(shell date +%s))
soak: build programs $(SPARK_FOLDER)
	@TAMIS_PAIRS=$(or $(PAIRS),10000000) TAMIS_SEED=$(SEED) \
		$(BIN)/python -m pytest tests/kernel/test_random.py tests/kernel/test_random_values.py
	@TAMIS_PAIRS=$(or $(PAIRS),1000000) TAMIS_SEED=$(SEED) \
		$(BIN)/python -m pytest tests/kernel/test_transform_random.py tests/kernel/test_transform_schema.py
	@TAMIS_DAMAGES=$(or $(DAMAGES),2000) TAMIS_SEED=$(SEED) $(BIN)/python -m pytest tests/generations/test_damage.py
	@TAMIS_DAMAGES=$(or $(DAMAGES),2000) cargo test --quiet --test damage
	@TAMIS_SOAK=1 $(BIN)/python -m pytest -m soak
	@PYTHONPATH=$(abspath $(SPARK_FOLDER)) $(BIN)/python -m pytest tests/spark
	@TAMIS_NETWORKS=10000 TAMIS_REAL_NETWORKS=200 TAMIS_SEED=$(SEED) \
		$(BIN)/python -m pytest $(PARALLEL) tests/network/test_routing.py tests/network/test_real_networks.py
	@TAMIS_GENERAL_PAIRS=1000000 TAMIS_SEED=$(or $(SEED),) $(BIN)/python -m pytest tests/network/test_generalise.py
	@TAMIS_KILLS=$(or $(KILLS),100) $(BIN)/python -m pytest -s tests/faults/test_faults.py tests/faults/test_faults_kafka.py \
		tests/faults/test_network_killed.py

clean:
	rm -rf $(VENV) target .cache dist

# $(call debian,PROGRAMS,PACKAGES): installs Debian's packages if one of the programs is missing.
define debian
	@PATH="$$PATH:$$(echo /usr/lib/postgresql/*/bin)"; missing=; \
	for program in $(1); do command -v $$program >/dev/null 2>&1 || missing="$$missing $$program"; done; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
			echo '── $(2)'; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(2) >/dev/null; \
		else echo "missing:$$missing; on Debian: apt-get install $(2)" >&2; exit 1; fi; \
	fi
endef

# Spark runs on Java 17 or newer.
java:
	$(call debian,java,default-jre-headless)

# Maven fetches Kafka and Spark's connector to it. The page is tested in a browser, webhooks with a certificate, the
# catalog in PostgreSQL too.
programs:
	$(call debian,java mvn chromium openssl initdb,default-jdk-headless maven chromium openssl postgresql)

$(VENV)/.created:
	@echo '── $(VENV)'
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed (make PYTHON=…)" if sys.version_info < (3, 11) else 0)'
	@if command -v uv >/dev/null; then uv venv --quiet --allow-existing --python $(PYTHON) $(VENV); \
	else $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check uv; fi
	@$(UV) pip install --quiet --constraints $(LOCK) --group build
	@touch $@

$(VENV)/.packages: pyproject.toml $(LOCK) | $(VENV)/.created
	@echo '── packages to run with'
	@$(INSTALL) --extra serve
	@touch $@

$(VENV)/.tools: pyproject.toml $(LOCK) $(VENV)/.packages
	@echo '── packages to lint, test and measure with'
	@$(INSTALL) --extra serve --extra bench --extra kafka --extra postgres --group dev
	@touch $@

$(VENV)/.kernel: $(KERNEL) | $(VENV)/.created
	@echo '── kernel, release build'
	@$(DEVELOP) --skip-install
	@touch $@

$(SPARK_FOLDER): | $(VENV)/.created
	@echo '── PySpark $(LOWEST_SPARK)'
	@rm -rf $@.new
	@$(UV) pip install --quiet --target $@.new "pyspark==$(LOWEST_SPARK)"
	@mv $@.new $@

# The kernel is compiled already.
dist/.built: $(VENV)/.kernel $(shell find python -type f -not -name '*.py[co]' -not -name '*.so') README.md LICENSE
	@rm -rf dist
	@PATH="$(abspath $(BIN)):$$PATH" sh -c 'said=$$(maturin sdist --out dist 2>&1) || { echo "$$said" >&2; exit 1; }'
	@PATH="$(abspath $(BIN)):$$PATH" maturin build --quiet --release --out dist
	@touch $@

# Without `--group` maturin would install the group `dev`.
$(VENV)/.built: $(VENV)/.kernel $(VENV)/.packages
	@$(DEVELOP) --quiet --uv --group build
	@touch $@
