# make install  sets up .venv, with the program keras-caption
# make run      trains, scores and exports a captioner on the built-in data
# make test     checks the style and the imports, and runs the tests
# make docs     builds the documentation, with the API, into site/html
# All set up what they need, in .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: install run test docs lint format clean

install: .venv/installed

run: .venv/installed
	$(BIN)/python experiments/run.py --model ngsan --resume

test: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile \
	    --no-loadscope-reorder

docs: .venv/installed
	$(BIN)/python docs/site.py

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/deptry .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/python docs/signatures.py
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --no-deps --editable .
	touch $@

clean:
	rm -rf .venv
