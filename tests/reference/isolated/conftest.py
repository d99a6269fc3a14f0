"""The findings of an application."""

import pytest
from finding_parts import decode, encode


@pytest.fixture
def found(app, isolated):
    """The findings of an application of these steps, as (kind, step, key, lineage)."""

    def found(*steps, payloads=(b"a1", b"b1", b"a2"), **options):
        options = {"decoder": decode, "encoder": encode, **options}
        result = isolated(app(*steps, **options), list(payloads))
        return [(one.kind, one.step, one.key, one.lineage) for one in result.findings]

    return found
