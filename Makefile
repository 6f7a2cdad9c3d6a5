# The verbs of this project. `make up` and `make test` do all their own set-up.
# On a cluster of yours: make up KUBECONFIG=… CONTEXT=… REGISTRY=… [NODE_ADDRESS=…]
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

ENV ?= local
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/llm-platform
UV_VERSION := 0.13.9
UV := $(CACHE)/uv-$(UV_VERSION)/bin/uv
PY := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export KUBECONFIG CONTEXT REGISTRY NODE_ADDRESS

.PHONY: help
help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

.PHONY: up
up: .venv/ready ## Everything, from nothing to an answer of the model
	@$(PY) -m deploy up --env $(ENV)

.PHONY: down
down: .venv/ready ## Destroy the stacks, and the lab's cluster
	@$(PY) -m deploy down --env $(ENV)

.PHONY: env
env: .venv/ready ## Print what puts pulumi and kubectl in reach: eval "$$(make -s env)"
	@$(PY) -m deploy env --env $(ENV)

.PHONY: preflight
preflight: .venv/ready ## What would fail in a cloud, before anything is made there
	@$(PY) -m deploy preflight --env $(ENV)

.PHONY: lab-up lab-down lab-status
lab-up: ## Start the one-node cluster alone, or repair it
	@python3 -m lab up
lab-down: ## Remove it and all in it
	@python3 -m lab down
lab-status: ## Each part of it, its process, health and log
	@python3 -m lab status

.PHONY: check
check: .venv/ready ## The fast checks, in about two minutes
	@$(MAKE) --no-print-directory -j2 lint unit

.PHONY: lint
lint: .venv/ready
	@ruff format --check .
	@ruff check .
	@basedpyright --level error
	@lint-imports --no-cache

.PHONY: unit
unit: .venv/ready
	@pytest -q -n 2 --dist loadfile tests/contract tests/golden tests/unit

.PHONY: test
test: .venv/ready servers check ## Every tier; the fast ones first
	@python3 -m lab toolchain
	@eval "$$(python3 -m lab env)" && pytest -q tests/services tests/engine tests/cluster

# Real servers for tests/services; Debian's packages, not started as services of the machine.
.PHONY: servers
servers:
	@{ [ -x /usr/lib/postgresql/15/bin/initdb ] && command -v redis-server >/dev/null; } || { \
	    echo "installing postgresql-15 and redis-server for the tests"; \
	    [ $$(id -u) = 0 ] || { echo "please install them: apt-get install postgresql-15 redis-server" >&2; exit 1; }; \
	    apt-get -qq update && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
	    --no-install-recommends postgresql-15 redis-server >/dev/null; }

.PHONY: soak
soak: .venv/ready ## The long fault runs; their figures go to benchmarks/RESULTS.md
	@python3 -m lab toolchain
	@eval "$$(python3 -m lab env)" && pytest -q -s -m soak tests/cluster

.PHONY: golden
golden: .venv/ready ## Write the rendered manifests anew, to be read as a diff
	@pytest -q tests/golden --update-golden

.PHONY: format
format: .venv/ready ## Format and fix what can be
	@ruff check --fix-only -q . && ruff format -q .

COMPILE = $(UV) pip compile --quiet --upgrade --generate-hashes --no-annotate \
	--python-version 3.11 --custom-compile-command "make requirements"
.PHONY: requirements
requirements: $(UV) ## Lock the newest allowed versions of all packages, with hashes
	@$(COMPILE) pyproject.toml -o requirements.txt
	@$(COMPILE) pyproject.toml --all-extras -o requirements-dev.txt
	@for extra in services llamacpp; do \
	    python3 -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$$extra'], sep='\n')" \
	    | $(COMPILE) - -o services/requirements-$$extra.txt || exit 1; done

$(UV):
	@echo "installing uv $(UV_VERSION) into $(CACHE)"
	@python3 -c 'import ensurepip' 2>/dev/null || { [ $$(id -u) = 0 ] && apt-get -qq update && \
	    apt-get -qq install -y --no-install-recommends python3-venv >/dev/null; } || \
	    { echo "python3 lacks venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@python3 -m venv $(CACHE)/uv-$(UV_VERSION).partial
	@$(CACHE)/uv-$(UV_VERSION).partial/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@rm -rf $(CACHE)/uv-$(UV_VERSION) && mv $(CACHE)/uv-$(UV_VERSION).partial $(CACHE)/uv-$(UV_VERSION)

# The environment is always whole: what isn't in the lock goes, what is missing comes.
.venv/ready: requirements-dev.txt | $(UV)
	@echo "installing Python packages into .venv (about a minute the first time)"
	@[ -x $(PY) ] || python3 -m venv --without-pip .venv
	@$(UV) pip sync --quiet --python $(PY) --require-hashes requirements-dev.txt
	@touch $@
