# Every target sets up what it needs; a second call finds that done and starts at once.
PYTHON ?= python3
PROMPT ?= a yellow bulldozer
ARGS ?=
WORKERS ?= 2

# Through the environment, so that a prompt with quotes arrives as it was typed; a dollar sign is $$ to make.
export PROMPT

BIN := .venv/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
PARITY_PINS := parity/requirements.txt
BENCH_PINS := bench/requirements.txt

.PHONY: dream test lint parity bench r-precision clean help

help:
	@echo 'make dream   an object from words   PROMPT="a red car" ARGS="--preset fast"'
	@echo 'make test    ruff, pyright, pytest  WORKERS=2'
	@echo 'make parity  compare with PyTorch, in an environment of its own (several GB)'
	@echo 'make bench   time every part beside what else there is, about half an hour'
	@echo 'make r-precision  24 objects judged by two judges, about an hour'
	@echo 'make clean   remove all environments and caches'

dream: .venv/.run
	$(BIN)/wordlight dream "$$PROMPT" --overwrite $(ARGS)

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

parity: .venv-parity/.run
	.venv-parity/bin/python -m parity $(ARGS)

bench: .venv-parity/.run .venv-bench/.run
	.venv-parity/bin/python -m bench $(ARGS)

r-precision: .venv/.test
	$(BIN)/python -m bench.r_precision $(ARGS)

clean:
	rm -rf .venv .venv-parity .venv-bench .pytest_cache .ruff_cache .hypothesis build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is touched last, so an install that broke half-way is taken up again.
.venv/.run: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e .
	touch $@

.venv/.test: .venv/.run
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[test]'
	touch $@

.venv-parity/.run: pyproject.toml $(PARITY_PINS) | .venv-parity/bin/python
	.venv-parity/bin/python $(PIP_INSTALL) -r $(PARITY_PINS) -e .
	touch $@

.venv-bench/.run: $(BENCH_PINS) | .venv-bench/bin/python
	.venv-bench/bin/python $(PIP_INSTALL) -r $(BENCH_PINS)
	touch $@

.venv/bin/python .venv-parity/bin/python .venv-bench/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than Python 3.11, which Wordlight needs."; \
	  echo "Install a newer one and name it: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(@:/bin/python=)
