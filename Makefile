# Each target sets up what it needs: the virtual environment .venv is made once and used again.
PYTHON ?= python3
OUTPUT ?= outputs/sample

.PHONY: sample test cuda
sample: .venv/installed
	.venv/bin/degrade build source=sample output=$(OUTPUT)

test: .venv/installed
	OMP_WAIT_POLICY=passive .venv/bin/python -m pytest  # torch's threads do not spin while they wait

cuda: .venv/installed
	.venv/bin/python -m pytest -m cuda tests

.venv/installed: pyproject.toml setup.py $(wildcard degrade/kernels/native/*.[ch])
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --editable '.[test]'
	touch $@
