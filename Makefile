# make demo   see it work            make test   run all that CI runs
# make docs   the site, in site/     make clean  remove what these made
PYTHON ?= python3
TOX := .venv/bin/tox

.PHONY: demo test docs test-browser clean

demo: $(TOX)
	@$(TOX) run --quiet -e demo

test: $(TOX)
	$(TOX) run

docs: $(TOX)
	$(TOX) run -e site

test-browser: $(TOX)
	$(TOX) run -e browser

clean:
	rm -rf .venv .tox site demo-out

$(TOX): Makefile constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.12 " ) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt tox
	@touch $(TOX)
