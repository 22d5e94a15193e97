# Everything happens in .venv and target/; `make clean` removes both.

PYTHON ?= python3
# How many processes the tests use; each may load TensorFlow.
JOBS ?= 2
# Further arguments, as in: make bench ARGS="--help"
ARGS ?=

.DEFAULT_GOAL := help
# One thing after another, but for checks that can go side by side.
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif

VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
EXTRAS := tensorflow ray test dev docs

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYO3_PYTHON := $(CURDIR)/$(VENV_PYTHON)
export TF_CPP_MIN_LOG_LEVEL ?= 3
export GRPC_VERBOSITY ?= ERROR
# Every process that a test starts would compile anybatch anew, a third of a second each.
unexport PYTHONDONTWRITEBYTECODE

say = @printf '==> %s\n' $(1)

# uv takes a quarter of pip's time, because it does several things at once. It does not read pip's settings, so
# whoever has an index of their own there gets pip.
install = @{ ! $(VENV_PYTHON) -m pip config list | grep -q index-url && \
	$(VENV_PYTHON) -m pip install --quiet -c constraints.txt uv && \
	$(VENV)/bin/uv pip install --quiet --native-tls --compile-bytecode --python $(VENV_PYTHON) -c constraints.txt -r $(1); \
	} || $(VENV_PYTHON) -m pip install --quiet -c constraints.txt -r $(1)

# A stamp carries a checksum of what it was made from, so that a file which was touched, or changed and
# changed back by switching branches, costs nothing.
STAMPS := $(VENV)/stamps
PACKAGES := $(shell cat pyproject.toml constraints.txt | cksum | tr ' ' '-')
SETUP := $(STAMPS)/setup-$(PACKAGES)
BENCH := $(STAMPS)/bench-$(PACKAGES)
BUILD := $(STAMPS)/build-$(shell { pwd; find Cargo.toml Cargo.lock pyproject.toml rust/core rust/pixels rust/python -type f \
	-exec cksum {} + 2>/dev/null | LC_ALL=C sort; } | cksum | tr ' ' '-')

LIST_REQUIREMENTS := import sys, tomllib; \
	project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	wanted = project["dependencies"] + sum((project["optional-dependencies"][e] for e in sys.argv[1:]), []); \
	print(*(r for r in wanted if not r.startswith("anybatch[")), sep="\n")

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(SETUP) ## Create .venv with everything development needs

$(SETUP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "anybatch needs Python 3.11 or newer; name one with: make PYTHON=python3.11" >&2; exit 2; }
	$(call say,"Creating $(VENV) with $(PYTHON)")
	@$(PYTHON) -m venv $(VENV)
	$(call say,"Installing Python packages; the first time this takes minutes and 2.4 GB of disk")
	@$(VENV_PYTHON) -c '$(LIST_REQUIREMENTS)' $(EXTRAS) > $(VENV)/requirements.txt
	$(call install,$(VENV)/requirements.txt)
	@mkdir -p $(STAMPS) && rm -f $(STAMPS)/setup-* && touch $@

.PHONY: build
build: $(BUILD) ## Compile the native module and install anybatch into .venv, editable

# The stamp means nothing once somebody has removed the module itself.
ifeq ($(wildcard src/anybatch/_native*.so),)
.PHONY: $(BUILD)
endif

$(BUILD): | $(SETUP)
	@command -v cargo > /dev/null || { echo "cargo is missing: install Rust 1.88 or newer" >&2; exit 2; }
	$(call say,"Compiling the native module; the first time this takes longest")
	@env -u CONDA_PREFIX VIRTUAL_ENV="$(CURDIR)/$(VENV)" PIP_CONSTRAINT="$(CURDIR)/constraints.txt" PIP_QUIET=1 \
		$(VENV_PYTHON) -m maturin develop --release --locked --quiet
	@mkdir -p $(STAMPS) && rm -f $(STAMPS)/build-* && touch $@

# Needs no Python: it is compiled while packages are being installed, and the module only has to be linked.
.PHONY: core
core:
	$(call say,"Compiling the core")
	@cargo build --release --locked --quiet -p anybatch-core

.PHONY: demo
demo: $(BUILD) ## See what anybatch does, on data it makes itself
	$(call say,"Running the demo")
	@$(VENV_PYTHON) examples/read_and_repair.py
	@rm -rf build/demo && $(VENV)/bin/anybatch demo --to build/demo $(ARGS)

.PHONY: test
test: ## Run every check that has to pass: lint, Rust tests, documentation, Python tests
	$(call say,"Installing and compiling and checking side by side; the first time this takes minutes")
	@$(MAKE) --no-print-directory --output-sync=target -j $(JOBS) SIDE_BY_SIDE=yes \
		test-rust setup core browser lint docs
	@$(MAKE) --no-print-directory test-python

# Only where somebody may install for all; elsewhere the tests say what they leave out.
.PHONY: browser
browser: ## Install Chromium for the tests of reports, where that is allowed
	@command -v chromium google-chrome chromium-browser > /dev/null || [ "$$(id -u)" != 0 ] || \
		! command -v apt-get > /dev/null || \
		{ apt-get update && apt-get install --yes --no-install-recommends chromium; } > /dev/null 2>&1 || \
		echo "==> No Chromium to be had: reports are not looked at in a browser"

.PHONY: test-rust
test-rust: ## Run the tests of the Rust core
	$(call say,"Running the Rust tests")
	@cargo test --profile quick --locked --quiet -p anybatch-core

.PHONY: test-python
test-python: $(BUILD) ## Run the Python tests and the examples in docstrings
	$(call say,"Running the Python tests")
	@$(VENV_PYTHON) -m pytest -q -n $(JOBS) -m "not soak" $(ARGS)

.PHONY: lint
lint: lint-python lint-types lint-layers lint-rust ## Check style, types, layers and formatting; change nothing

.PHONY: lint-python
lint-python: $(SETUP)
	$(call say,"Checking Python style")
	@$(VENV_PYTHON) -m ruff check --quiet .
	@$(VENV_PYTHON) -m ruff format --quiet --check .

.PHONY: lint-types
lint-types: $(SETUP)
	$(call say,"Checking Python types")
	@$(VENV_PYTHON) -m mypy --strict

.PHONY: lint-layers
lint-layers: $(BUILD)
	$(call say,"Checking that imports keep to the layers")
	@$(VENV)/bin/lint-imports --no-logo

.PHONY: lint-rust
lint-rust: $(SETUP)
	$(call say,"Checking Rust formatting and lints")
	@cargo fmt --all --check
	@cargo clippy --quiet --locked --workspace --all-targets -- -D warnings

.PHONY: format
format: $(SETUP) ## Rewrite Python and Rust sources in the agreed style
	$(call say,"Formatting")
	@$(VENV_PYTHON) -m ruff check --quiet --fix . || true
	@$(VENV_PYTHON) -m ruff format --quiet .
	@cargo fmt --all

# Apart from the rest: where matplotlib is installed Keras imports it, a second of every process that a test starts.
$(BENCH): | $(SETUP)
	$(call say,"Installing what draws the plots")
	@$(VENV_PYTHON) -c '$(LIST_REQUIREMENTS)' bench > $(VENV)/requirements-bench.txt
	$(call install,$(VENV)/requirements-bench.txt)
	@rm -f $(STAMPS)/bench-* && touch $@

.PHONY: bench
bench: $(BUILD) $(BENCH) ## Measure, side by side with everybody else; ARGS=--quick takes minutes
	$(call say,"Running the benchmarks")
	@$(VENV_PYTHON) -m benchmarks $(ARGS)

.PHONY: docs
docs: $(BUILD) ## Build the documentation into build/site; a dead link is an error
	$(call say,"Building the documentation")
	@NO_MKDOCS_2_WARNING=1 $(VENV_PYTHON) -m mkdocs build --quiet --strict --site-dir build/site $(ARGS)

.PHONY: recording
recording: $(BUILD) ## Record the doctor anew for the README, as an animated picture
	$(call say,"Recording")
	@rm -rf build/recording && mkdir -p build/recording/train
	@cd build/recording && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" && export PATH && \
		python -c 'from anybatch.cli.demo.data import *; to = Path("train"); \
			write_sorted_digits(to); damage(min(to.glob("*.tfrecord")))' && \
		python $(CURDIR)/docs/site/recording.py $(CURDIR)/docs/images/doctor.svg \
			anybatch doctor 'train/*.tfrecord' --batch-size 512 --shuffle-buffer 1000

.PHONY: dist
dist: $(BUILD) ## Build wheel and sdist into dist/, and try both as a stranger would
	$(call say,"Building the wheel and the sdist")
	@rm -rf dist && mkdir -p dist
	@$(VENV_PYTHON) -c '$(LIST_REQUIREMENTS)' dist > $(VENV)/requirements-dist.txt
	$(call install,$(VENV)/requirements-dist.txt)
	@$(VENV_PYTHON) -m maturin sdist --out dist 2>&1 | tail -1
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV_PYTHON) -m maturin build --release --locked --quiet --zig --compatibility manylinux_2_17 --out dist
	$(call say,"Trying them without Rust and without this folder")
	@$(VENV_PYTHON) -m pytest -q -m soak tests/packaging $(ARGS)

.PHONY: soak
soak: $(BUILD) ## Run the tests that take long
	$(call say,"Running the long tests")
	@$(VENV_PYTHON) -m pytest -m soak --ignore tests/packaging $(ARGS)

.PHONY: fuzz
fuzz: ## Throw hostile bytes at the Rust core
	$(call say,"Fuzzing the Rust core")
	@rust/fuzz/run.sh $(ARGS)

.PHONY: clean
clean: ## Remove everything that make has made
	$(call say,"Removing $(VENV) and target and caches")
	@rm -rf $(VENV) target src/anybatch/_native*.so \
		.pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
