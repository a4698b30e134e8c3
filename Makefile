# make install  sets up .venv, with the program keras-caption and all that it needs
# make run      trains, scores and exports a captioner on the built-in data
# make test     checks the style and the imports, and runs the quick tests
# make test-rest  runs all other tests
# make docs     builds the documentation, with the API, into site/html
# All set up what they need, in .venv: the tests and `docs` the tests' packages too.

# Processes of the tests, each of up to 6 GB: `make test PROCESSES=4`
PROCESSES ?= 2
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# By uv, if it can be had: it takes a tenth of pip's time. It reads no configuration of
# pip; where an index is named there, pip goes on.
INSTALL = install() { $(BIN)/python -m uv pip install "$$@" || \
    $(PIP) install "$$@"; }; install

.PHONY: install run test test-rest docs lint format clean

install: .venv/installed

run: .venv/installed
	$(BIN)/python experiments/run.py --config scenes --resume

# With `loadfile`, pytest-xdist waits for ever once it has replaced a process that died.
# With `-v`, it says more than that it brings up nodes.
PYTEST = $(BIN)/python -m pytest -v --numprocesses $(PROCESSES) --dist loadfile \
    --no-loadscope-reorder --max-worker-restart 0

test: lint
	$(PYTEST) -m 'not slow'

test-rest: .venv/installed-tests
	$(PYTEST) -m slow

docs: .venv/installed-tests
	$(BIN)/python docs/site.py

lint: .venv/installed-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/deptry .
	$(BIN)/mypy

format: .venv/installed-tests
	$(BIN)/python docs/catalogue.py
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	-$(PIP) install --quiet uv
	$(INSTALL) --constraint requirements.txt --editable '.[experiments]'
	touch $@

.venv/installed-tests: .venv/installed
	$(INSTALL) --requirement requirements.txt
	touch $@

clean:
	rm -rf .venv
