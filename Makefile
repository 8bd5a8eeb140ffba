# Every target works on a fresh machine with python3, pip and make. The virtual environment is made when needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal $(if $(JUNIT),-p tests.durations --junitxml=$(JUNIT))

PROCESS_TESTS := $(addprefix tests/noetlvm/,service engine wake store results cli/test_control.py cli/test_looking.py) \
  $(addprefix tests/noetlvm/tools/test_,nats.py postgres.py shell.py python.py python_sandbox.py http_hostile.py) \
  tests/whole/service tests/whole/kill tests/whole/chaos

.PHONY: audit chaos demo kill mutants test test-all test-long test-near test-record test-short test-versions check format bench docs update wheel fuzz oracle clean test-random test-repeat

demo: $(READY)  ## Find mistakes, kill a run and resume it, and draw the way that its tokens took.
	@.ci/timed $@ '$(BIN)/python examples/demo.py'

test: $(READY)  ## Run the tests, without those that are long by nature; with the time of each: make test JUNIT=junit.xml
	@.ci/timed $@ '$(PYTEST) -m "not long"'

test-long: $(READY)  ## Run the long tests: kill campaigns, chaos, mutants, large scale.
	@.ci/timed $@ '$(PYTEST) -m long'

test-random: $(READY)  ## Run the tests of Hypothesis with random examples, for two minutes, or of a seed: make test-random SEED=7
	@.ci/timed $@ '$(BIN)/python -m tests.random_examples --seconds $(or $(SECONDS),120) $(if $(SEED),--seed $(SEED))'

test-repeat: $(READY)  ## Run the tests of processes, sockets and databases many times, until one fails: make test-repeat RUNS=20
	@for run in $$(seq $(or $(RUNS),20)); do \
	  .ci/timed "$@ $$run" '$(PYTEST) -m "not long" $(or $(TESTS),$(PROCESS_TESTS))' || exit 1; \
	done

test-all: test test-long  ## Run all tests.

test-near: $(READY)  ## Run the tests that reach what differs from main, in under a minute: make test-near SINCE=HEAD~3
	@$(BIN)/python -m tests.whole.near $(if $(SINCE),--since $(SINCE))

test-record: $(READY)  ## Run the tests and record what each reaches, for `make test-near`; takes about twice as long.
	@.ci/timed $@ 'REACH=all $(PYTEST) -m "not long" -p tests.whole.near.plugin'

test-short: $(READY)  ## Run the tests that notice another version of Python or of a package; about a minute.
	@.ci/timed $@ '$(PYTEST) -m "not long" @tests/short.txt'

test-versions: $(READY)  ## Run these with the other versions of Python that are here, and with the lowest of packages.
	@.ci/timed $@ '$(BIN)/python .ci/versions.py'

kill: $(READY)  ## Kill -9 engines, servers, workers, PostgreSQL and NATS 4,000 times: make kill KILLS=10000
	@.ci/timed $@ 'KILL_SEEDS=200 SERVICE_KILLS=$(or $(KILLS),2000) $(PYTEST) tests/whole/kill tests/whole/service/test_kills.py'

chaos: $(READY)  ## Faults of every kind on real processes, histories checked: make chaos SECONDS=600 SEED=7
	@.ci/timed $@ '$(BIN)/python -m tests.whole.chaos --seconds $(or $(SECONDS),300) --seed $(or $(SEED),1)'

mutants: $(READY)  ## Small changes to noetlvm/machine, one at a time; prints what nothing notices: make mutants SAMPLE=100
	@.ci/timed $@ '$(BIN)/python -m tests.whole.mutation --jobs 2 $(if $(SAMPLE),--sample $(SAMPLE))'

audit: $(READY)  ## Predicted results, sandbox, hostile input, secrets, templates, mutants, kills: make audit TIMES=10
	@.ci/timed $@ '$(BIN)/python -m tests.whole.audit --times $(or $(TIMES),1)'

check: $(READY)  ## Format, lint, types, stale docs.
	@.ci/timed $@ '$(BIN)/ruff format --check .' '$(BIN)/ruff check .' $(BIN)/mypy '$(BIN)/python docs/generate.py --check'

format: $(READY)
	@.ci/timed $@ '$(BIN)/ruff format .' '$(BIN)/ruff check --fix .'

bench: $(READY)  ## Measure speed beside peers; prints a table and writes bench/results/*.json.
	@.ci/timed $@ '$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[bench]"' '$(BIN)/python bench/run.py'

docs: $(READY)  ## Write the generated pages, and what the commands in other pages print.
	@.ci/timed $@ '$(BIN)/python docs/generate.py' '$(BIN)/python -m pytest -n 0 --update tests/whole/test_pages.py'

update: $(READY)  ## Rewrite golden files from what the code does now; read the diff before you commit it.
	@.ci/timed $@ '$(BIN)/python -m pytest --update' '$(BIN)/python docs/generate.py'

fuzz: $(READY)  ## Mutate bundles for as long as one likes: make fuzz COUNT=1000000 SEED=7
	@.ci/timed $@ '$(BIN)/python -m tests.whole.fuzz.bundles --count $(or $(COUNT),20000) --seed $(or $(SEED),1)'

oracle: $(READY)  ## Compare generated expressions with Jinja2: make oracle COUNT=100000 SEED=7
	@.ci/timed $@ '$(BIN)/python -m tests.whole.oracle.expressions --count $(or $(COUNT),100000) --seed $(or $(SEED),1)'

wheel: $(READY)  ## Build the wheel and lint a file with it in a clean environment.
	@.ci/timed $@ '$(BIN)/python .ci/wheel_smoke.py'

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) .ci/set_up.py $(VENV)
	@touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache bench/results
