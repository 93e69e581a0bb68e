# Everything happens in .venv, made from pyproject.toml and the exact versions in constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH = $(if $(DATA),--data '$(DATA)') $(if $(PARTS),--only '$(PARTS)')
JOEYNMT := benchmarks/.joeynmt-venv
JOEYNMT_PIP := $(JOEYNMT)/bin/python -m pip install --quiet --disable-pip-version-check
JOEYNMT_NEEDS := importlib_metadata matplotlib numpy packaging pandas plotly pyyaml sacrebleu sacremoses sentencepiece \
	setuptools tensorboard tqdm

.PHONY: help install demo test test-all test-gpu bench bench-gpu lint format docs audit clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

install: $(STAMP)  ## make or update the environment

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) and "attnlab needs Python 3.11 to 3.13; add PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install  ## compare attention variants on the embedded corpus, in minutes; leaves runs/demo/comparison.md
	$(BIN)/attnlab study demo hydra/launcher=parallel

test: install  ## run the tests
	$(BIN)/python -m pytest

test-all: install  ## run all tests, the exhaustive ones too; half an hour to an hour on two cores
	$(BIN)/python -m pytest -m ''

test-gpu: install  ## run the tests that need a GPU with CUDA, which are skipped elsewhere
	$(BIN)/python -m pytest -n 0 -m gpu

bench: install $(JOEYNMT)  ## measure speed beside peers; DATA=FOLDER of Multi30k, PARTS=training,memory for some parts
	$(BIN)/python -m benchmarks $(BENCH)

bench-gpu: install $(JOEYNMT)  ## the same on a GPU
	$(BIN)/python -m benchmarks --device cuda --batches 100 $(BENCH)

# Its bound on protobuf excludes every tensorboard of today: it is installed alone, and beside it what its training imports.
$(JOEYNMT): constraints.txt
	rm -rf $@
	{ $(PYTHON) -m venv $@ \
	&& $(JOEYNMT_PIP) --constraint constraints.txt torch \
	&& $(JOEYNMT_PIP) --constraint constraints.txt $(JOEYNMT_NEEDS) \
	&& $(JOEYNMT_PIP) --no-deps 'joeynmt==2.3.*' subword-nmt \
	&& touch $@; } || { rm -rf $@; echo 'JoeyNMT could not be installed, and will not be measured' >&2; }

lint: install  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install  ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install  ## write docs/components.md and docs/licences.md anew, and the site into build/site
	$(BIN)/python docs/components.py
	$(BIN)/python docs/licences.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

audit:  ## look up known vulnerabilities of all pinned versions, in the advisories of pypi.org
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip-audit
	$(VENV)/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --strict --progress-spinner off

clean:  ## remove the environment and everything that tools left; runs/ stays
	rm -rf $(VENV) $(JOEYNMT) build dist .mypy_cache .ruff_cache .pytest_cache src/*.egg-info
