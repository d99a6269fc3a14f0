"""An application as a file, and runs of it that end with the test."""

import pytest
from running import APP, Run


@pytest.fixture
def app_file(tmp_path):
    path = tmp_path / "app.py"
    path.write_text(APP)
    return path


@pytest.fixture
def run(app_file):
    runs = []

    def start(*arguments, **options):
        runs.append(Run(app_file, *arguments, **options))
        return runs[-1]

    yield start
    for each in runs:
        each.end()
