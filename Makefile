# wikikeeper: `make run` and `make test` set up everything that they need, in the folder .venv and nowhere else.
# Needs python3 (3.11 or newer, with venv) and make: on Debian and Ubuntu `apt install python3-venv make`.

PYTHON ?= python3
# Arguments for pytest: make test ARGS='tests/policy -k quotes'.
ARGS ?=
# Where the measuring data lies, for the bench targets (tests read the same variable).
WIKIKEEPER_DATA ?= ../shared/data

# uv's cache and the folder are often on two file systems: copying works on all of them and warns on none.
export UV_LINK_MODE := copy
# Seconds: the judge's model is 91 MB in one file, and lines are slow.
export UV_HTTP_TIMEOUT ?= 180
# pip is only used to bring uv; its own news are not ours.
export PIP_DISABLE_PIP_VERSION_CHECK := 1

BIN := .venv/bin
UV := $(BIN)/uv
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate

.PHONY: run test check format lock readme bench-extraction bench-judge bench-cycle clean help FORCE
.DEFAULT_GOAL := help

run: .venv/.stamp-run ## try it: one research cycle over an example wiki in try-wiki/ (made if absent)
	@$(BIN)/wikikeeper try try-wiki

test: .venv/.stamp-dev ## run the tests; ARGS='...' goes to pytest
	@$(BIN)/python -m pytest $(ARGS)

check: .venv/.stamp-dev ## ruff (rules and format), mypy (strict), import contracts
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: .venv/.stamp-dev ## put the sources into their format
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

# Compiled for every system and Python from 3.11 on, with hashes, naming no host: the registry is whichever one is set up.
lock: .venv/.stamp-uv ## pin dependencies again after a change in pyproject.toml; UPGRADE=--upgrade takes the newest
	@$(LOCK) $(UPGRADE) --group pyproject.toml:bootstrap -o requirements-uv.txt
	@$(LOCK) $(UPGRADE) pyproject.toml --extra model --group build -o requirements.txt
	@$(LOCK) $(UPGRADE) --group pyproject.toml:dev -c requirements.txt -o requirements-dev.txt

bench-extraction: .venv/.stamp-dev ## how well and how fast text is extracted
	@$(BIN)/python bench/extraction.py $(WIKIKEEPER_DATA)/01_html --json

bench-judge: .venv/.stamp-dev ## how well the bundled judge judges
	@$(BIN)/python bench/judge_quality.py --data $(WIKIKEEPER_DATA) --json

bench-cycle: .venv/.stamp-dev ## how busy a cycle keeps the model server
	@$(BIN)/python bench/cycle.py --json

readme: .venv/.stamp-dev ## bring the table of settings in README.md up to date
	@$(BIN)/python tests/readme_table.py

clean: ## remove what make and the tools made; try-wiki/ stays
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find shared tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# -- set-up. A stamp is newer than what it was made from, so that a second call does nothing. All lie in .venv, so that
# removing .venv starts afresh.

# For which Python and in which folder .venv was made: it works in no other, so it is made anew for another.
WANTED := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) $(CURDIR)
ifneq ($(shell cat .venv/.stamp-venv 2>/dev/null),$(WANTED))
.venv/.stamp-venv: FORCE
endif

define PREFLIGHT
import sys
if sys.version_info < (3, 11):
    sys.exit("wikikeeper needs Python 3.11 or newer; %s is %d.%d. Is there another? make PYTHON=python3.12 ..." % ((sys.executable,) + sys.version_info[:2]))
try:
    import ensurepip, venv
except ImportError:
    sys.exit("%s has no venv. On Debian and Ubuntu: apt install python3-venv (for this one: python%d.%d-venv)" % ((sys.executable,) + sys.version_info[:2]))
endef
export PREFLIGHT

.venv/.stamp-venv:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not there. On Debian and Ubuntu: apt install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c "$$PREFLIGHT"
	@echo "Setting up .venv (once) ..."
	@$(PYTHON) -m venv --clear .venv
	@echo "$(WANTED)" > $@

.venv/.stamp-uv: .venv/.stamp-venv requirements-uv.txt
	@$(BIN)/python -m pip install --quiet --no-deps --only-binary :all: --require-hashes -r requirements-uv.txt
	@touch $@

# --no-build-isolation: the build backend is one of the pinned packages, not whatever is newest today.
.venv/.stamp-run: .venv/.stamp-uv requirements.txt pyproject.toml
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.stamp-dev: .venv/.stamp-run requirements-dev.txt
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.txt
	@touch $@
