# make demo   see it work            make test   run all that CI runs
# make docs   the site, in site/     make clean  remove what these made
PYTHON ?= python3
TOX := .venv/bin/tox

.PHONY: demo test docs test-browser clean

demo: $(TOX)
	@echo "setting up (a minute or two the first time) ..."
	@$(TOX) run --quiet --notest -e unit
	@.tox/unit/bin/python -m demo

test: $(TOX)
	$(TOX) run

docs: $(TOX)
	$(TOX) run -e site

test-browser: $(TOX)
	$(TOX) run -e browser

clean:
	rm -rf .venv .tox site demo-out

$(TOX): Makefile constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("this is Python %s and 3.11 or newer is needed; try: make PYTHON=python3.12" % sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt tox
	@touch $(TOX)
