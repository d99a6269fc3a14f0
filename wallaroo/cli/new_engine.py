"""What ``wallaroo new --engine`` writes: the repository of an engine, with tests and CI files."""

from string import Template

_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "$name-engine"
version = "0.1.0"
description = "An engine for Wallaroo applications."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["wallaroo-streams"]

[project.entry-points."wallaroo.engines"] # under this name the engine is found
$name = "${name}_engine:Engine"

[tool.hatch.build.targets.wheel]
packages = ["${name}_engine"]

[tool.pytest.ini_options]
testpaths = ["tests"]
# It knows --wallaroo-engine: `pytest --wallaroo-engine $name` runs a test for each rule.
addopts = ["-p", "wallaroo_conformance.plugin"]
"""

# A test makes sure that it runs as conformance/adapters/naive.py does.
_ENGINE = '''\
"""$name: an engine for Wallaroo applications. A dictionary of states, one message after the other.

Put your own way of running an application into `run`. `Calls` calls the user code and judges what
it gives. What is left is what an engine is for: which message goes where, when, and which state
goes with which key.
"""

from wallaroo.engine import Capabilities
from wallaroo.errors import UnsupportedTopology
from wallaroo.judging.calls import Calls, Message, refuse_time
from wallaroo.judging.stages import has_operation
from wallaroo.operations import Stateful


class Engine:
    name = "$name"
    version = "0.1.0"

    def capabilities(self):
        # What is not claimed here is not tried, and the report says so.
        return Capabilities(isolation=frozenset({"isolated"}), live=False, stop="none")

    def check(self, application):
        # What the engine cannot run, it refuses here, before it reads any input.
        refuse_time(application, "$name")

    def run(self, case):
        self.check(case.application)
        application, calls = case.application, Calls(case.application)
        first = {node.pipeline: index for index, node in reversed([*enumerate(application.nodes)])}
        states, results = {}, []

        def follow(index, outcomes):
            for one in outcomes:
                if not isinstance(one, Message):
                    results.append(one)  # an output, a dead letter, an end
                    continue
                for consumer in application.consumers[index]:
                    follow(consumer, step(application.nodes[consumer], one))

        def step(node, message):
            if not has_operation(node, Stateful):
                return calls.pass_on(node, message)
            key = calls.key(node, message)
            if not isinstance(key, bytes):
                return [key]
            entity = (node.operation.partition, key)
            outcomes, states[entity] = calls.visit(node, key, message, states.get(entity))
            return outcomes

        for sequence, record in enumerate(case.records):
            outcomes = calls.begin(sequence, record)
            if outcomes:
                follow(first[record.source], outcomes)
        return calls.trace(results, calls.entities(states, case.partitions))

    def run_many(self, cases):
        return [self.run(case) for case in cases]

    def serve(self, application, options):
        raise UnsupportedTopology("stop-1", application.name, "$name does not run live yet")

    def add_arguments(self, parser):
        pass  # options of its own for `wallaroo run --engine $name`
'''

_TEST = '''\
"""Tests of $name on an application of our own. The rules have theirs: --wallaroo-engine $name."""

import wallaroo
from wallaroo import testing


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode("utf-8")


class Count:
    def __init__(self):
        self.count = 0


@wallaroo.partition
def by_word(word):
    return word


@wallaroo.state_computation(name="count")
def count(word, state):
    state.count += 1
    return (word, state.count), True


@wallaroo.encoder
def encode(result):
    return "{} => {}\\n".format(*result)


def application():
    ab = wallaroo.ApplicationBuilder("words")
    ab.new_pipeline("words", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    ab.to_state_partition(count, Count, "counts", by_word)
    ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    return ab.build()


def test_each_word_has_its_own_count():
    result = testing.run(application(), {"words": [b"a", b"b", b"a"]}, engine="$name")
    assert result.output == [b"a => 1\\n", b"b => 1\\n", b"a => 2\\n"]
'''

_README = """\
# $name

An engine for Wallaroo applications. It begins as fifty lines that keep every rule that they claim:
`${name}_engine/__init__.py`. Change them into yours, and see what still holds.

## The first report

You need Python 3.11 or newer and a checkout of Wallaroo. In this folder, with that checkout's path
in the place of `../wallaroo`:

```sh
python3 -m venv .venv
. .venv/bin/activate
pip install "../wallaroo[conformance]" --editable .
wallaroo conform --engine $name --budget 60s
```

That is the report: a line for each rule. *Unsupported* is what the engine does not claim (see
`capabilities` and `check`); a broken rule comes with the smallest application that shows it. The
exit code is 0 if each rule that it claims is kept, 1 if one is broken, and 2 if the check is
incomplete.

## Tests

```sh
pytest                                  # your own, in tests/
pytest --wallaroo-engine $name          # a test for each rule
pytest tests --wallaroo-engine $name    # both
```

Cases that failed are kept in `wallaroo-counterexamples/`, and `wallaroo replay FILE --engine $name`
runs one of them again.

## In CI

Both CI files need a checkout of Wallaroo in `vendor/wallaroo`. A submodule is one:

```sh
git init
git submodule add ADDRESS-OF-WALLAROO vendor/wallaroo
```

`.github/workflows/conformance.yml` is for GitHub, `.gitlab-ci.yml` for GitLab. Both check the
engine at every push, for two minutes. GitHub does so for half an hour each night; in GitLab, make a
scheduled pipeline for that. The run's page shows the report; what failed is kept.

## Where to read on

In the checkout of Wallaroo: `docs/engines.md` (how an engine is written), `docs/conformance.md`
(how it is checked), `docs/spec/index.md` (the rules), `docs/ci.md`.
"""

_GITHUB = """\
name: conformance
on:
  push:
  pull_request:
  schedule:
    - cron: "17 3 * * *" # each night, longer, with other cases

jobs:
  conformance:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
        with:
          submodules: true
      - uses: ./vendor/wallaroo/.github/actions/conform
        with:
          check: --engine $name
          budget: $${{ github.event_name == 'schedule' && '30m' || '2m' }}
          seed: $${{ github.event_name == 'schedule' && github.run_number || '0' }}
      - name: Own tests
        run: python -m pytest
"""

_GITLAB = """\
# The hidden job is .gitlab/conform.yml of Wallaroo: GitLab includes no file of a submodule.
.conform:
  image: python:3.12
  timeout: 1 hour
  variables:
    CHECK: --engine $name
    BUDGET: 2m
    SEED: "0"
    INSTALL: .
    WALLAROO: vendor/wallaroo
    GIT_SUBMODULE_STRATEGY: normal
    PIP_CACHE_DIR: $$CI_PROJECT_DIR/.cache/pip
  cache:
    key: wallaroo-$$CI_JOB_NAME
    when: always
    paths:
      - .cache/pip
      - wallaroo-counterexamples/
  before_script:
    - python -m pip install "$$WALLAROO[conformance]" $$INSTALL
  script:
    - >-
      eval "wallaroo conform $$CHECK" --budget "$$BUDGET" --seed "$$SEED"
      --markdown conformance.md --html conformance.html
      --junit conformance.xml --json conformance.json
  artifacts:
    when: always
    expose_as: conformance report
    paths:
      - conformance.html
      - conformance.md
      - conformance.json
      - wallaroo-counterexamples/
    reports:
      junit: conformance.xml

conformance:
  extends: .conform

nightly: # make a scheduled pipeline for it
  extends: .conform
  rules:
    - if: $$CI_PIPELINE_SOURCE == "schedule"
  variables:
    BUDGET: 30m
    SEED: $$CI_PIPELINE_IID # other cases each night

tests:
  extends: .conform
  script:
    - python -m pytest
  artifacts: null
"""

_IGNORED = """\
.venv/
.cache/
.hypothesis/
.pytest_cache/
__pycache__/
wallaroo-counterexamples/
/conformance.*
"""

FILES = {
    "README.md": Template(_README),
    "pyproject.toml": Template(_PYPROJECT),
    "${name}_engine/__init__.py": Template(_ENGINE),
    "tests/test_engine.py": Template(_TEST),
    ".github/workflows/conformance.yml": Template(_GITHUB),
    ".gitlab-ci.yml": Template(_GITLAB),
    ".gitignore": Template(_IGNORED),
}
"""By path within the repository, whose ``$name`` is put in as in the texts."""
