# make demo   see it work            make test      run all that CI runs
# make docs   the site, in site/     make coverage  what the tests reach, in coverage-html/
# make bench  is it slower now?      make clean     remove what these made
PYTHON ?= python3
TOX := .venv/bin/tox
# Pythons that pyenv keeps are not on the path: tox is told of them.
PYTHONS := $(wildcard $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/3.1[1-9]*/bin/python)

.PHONY: demo test docs coverage test-browser bench clean

demo: $(TOX)
	@echo "setting up (a minute or two the first time) ..."
	@$(TOX) run --quiet --notest -e unit
	@.tox/unit/bin/python -m demo

# tox's last lines tell which Pythons there were (OK) and which were not found (SKIP).
test: $(TOX)
	@.venv/bin/python -c 'import sys; print("unit runs all tests on Python %d.%d; py3NN part of them on the others" % sys.version_info[:2])'
	$(TOX) run-parallel --parallel 2 --parallel-live --skip-env "$$(.venv/bin/python -c 'import sys; print("py%d%d" % sys.version_info[:2])')" $(if $(PYTHONS),--discover $(PYTHONS))

# Examples run in their pages with parts from the npm registry: that needs Node 20 or newer, with npm.
# With PLAIN=1 it needs neither, and pages can only be read.
docs: $(TOX)
	$(TOX) run -e site -- $(if $(PLAIN),--plain)

coverage: $(TOX)
	$(TOX) run -e coverage

test-browser: $(TOX)
	$(TOX) run -e browser

# Two commits in turns, some minutes: on a machine with nothing else to do. ARGS="--help" says more.
bench: $(TOX)
	@$(TOX) run --quiet --notest -e unit
	@.tox/unit/bin/python benchmarks/history.py $(ARGS)

clean:
	rm -rf .venv .tox .coverage .coverage.* coverage-html site demo-out

$(TOX): Makefile constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("this is Python %s and 3.11 or newer is needed; try: make PYTHON=python3.12" % sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt tox
	@touch $(TOX)
