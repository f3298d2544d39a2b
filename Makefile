# Every target sets up what it needs by itself: Python 3.11+ and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUNNABLE := $(VENV)/.runnable
QUICK ?=
# Tests wait for processes and sockets much of the time: two workers per core keep it busy.
WORKERS ?= $(shell echo $$((2 * $$(nproc 2>/dev/null || echo 2))))
RUNS ?=
# Tests start hundreds of processes: each would compile what it imports again if no bytecode were kept.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup run cluster test peers verdicts faults faults-cluster races fuzz lint format schema bench bench-wire bench-session bench-hub bench-cluster sim-scale shots clean

check-python = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Antiphon needs Python 3.11 or newer; $(PYTHON) is older. Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

setup: $(READY) ## Make the environment in .venv, with all extras and the test tools

# What `make run` needs, and nothing else. An environment that has everything is good for it too.
$(RUNNABLE): pyproject.toml
	@test -e $(READY) -a ! pyproject.toml -nt $(READY) || { $(check-python) && $(PYTHON) tools/run_environment.py $(VENV); }
	@touch $@

# uv resolves, installs and compiles on all cores, in a quarter of pip's time. Where there is none, pip brings it.
$(READY): pyproject.toml
	@$(check-python)
	@echo "Installing everything, with the test tools, into $(VENV) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	@command -v uv >/dev/null || test -x $(BIN)/uv || { \
		$(BIN)/python -m ensurepip --default-pip >/dev/null && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check uv; \
	}
	@PATH="$$PATH:$(BIN)" uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[all,dev]'
	@rm -f $(VENV)/lib/*/site-packages/antiphon_checkout.pth
	@touch $@

run: $(RUNNABLE) ## Start the hub with every installed agent, and say what to do next (DATA=folder for another place)
	@$(BIN)/antiphon serve $(if $(DATA),--data "$(DATA)")

cluster: $(READY) ## Start three NATS servers and three hubs on them, with the built-in agent, until Ctrl-C
	@$(BIN)/python -m tools.cluster

test: $(READY) ## Run every test this machine can run; the summary names each skip and why, and the slowest
	@$(BIN)/python -m compileall -q -j 0 -x '/test_' src examples tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations=15

peers: $(READY) ## Install the official SDKs and real agents into .cache/peers, for the tests and benchmarks that need them
	$(BIN)/python -m tests.peers.install

verdicts: peers ## Judge Antiphon, the official SDKs, real agents and real clients, and write docs/verdicts.md
	$(BIN)/python -m tools.verdicts

faults: $(READY) ## Kill a busy agent 200 times and a busy hub 300 times, and look for what is lost or doubled (RUNS=n for fewer)
	$(BIN)/python -m tests.faults.campaign $(if $(RUNS),--runs $(RUNS))
	$(BIN)/python -m tests.faults.hub_campaign $(if $(RUNS),--kills $(RUNS))

faults-cluster: $(READY) ## Break a busy cluster of three hubs 200 times, and look for what is lost or doubled (RUNS=n for fewer; SEED=n)
	$(BIN)/python -m tests.cluster.campaign $(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED))

races: $(READY) ## Race requests of two clients against each other in 2,000 seeded schedules, with a third looking on (RUNS=n for fewer)
	$(BIN)/python -m tests.races.campaign $(if $(RUNS),--runs $(RUNS))

fuzz: $(READY) ## Change inputs of sockets, pipes and files at random, and look for crashes (MINUTES=n of CPU time; SEED=n)
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),2) $(if $(SEED),--seed $(SEED))

lint: $(READY) ## Check style, types, layers and the generated schema
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.schema_generator --check

format: $(READY) ## Put the code in shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schema: $(READY) ## Generate the types from the pinned schemas
	$(BIN)/python -m tools.schema_generator

bench: bench-wire bench-session bench-hub bench-cluster ## Run every benchmark (QUICK=1 for a short run)

bench-wire: peers ## Measure the wire against the official SDKs
	$(BIN)/python -m bench.wire $(if $(QUICK),--quick)

bench-session: $(READY) ## Measure durable sessions: streaming, appending, replay and idling
	$(BIN)/python -m bench.session $(if $(QUICK),--quick)

bench-hub: peers ## Measure a hub's fan-out against a broadcast with Node's ws
	$(BIN)/python -m bench.hub $(if $(QUICK),--quick)

bench-cluster: $(READY) ## Measure hubs on one store: events next to bare nats-py, fan-out over three hubs, prompts and delays elsewhere
	$(BIN)/python -m bench.cluster $(if $(QUICK),--quick)

sim-scale: $(READY) ## Simulate placement, takeover storms and fan-out of a cluster with the measured costs, for docs/scale.md
	$(BIN)/python -m tools.scale

shots: $(READY) ## Renew the pictures and the recording in docs/shots (needs chromium and tmux)
	$(BIN)/python -m tools.shots

clean: ## Remove what was made here
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/results
