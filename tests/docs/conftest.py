"""The documents' site, built once."""

import pytest
from wallaroo_docs.site import build


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder the site is in; the build refuses links that lead nowhere."""
    directory = tmp_path_factory.mktemp("site") / "site"
    build(directory)
    return directory
