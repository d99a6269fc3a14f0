"""The figures as Prometheus reads them, by prometheus_client, which the extra `metrics` brings."""

import pytest

from wallaroo.monitor.families import NAMES
from wallaroo.text import escaped

from .conftest import NASTY

pytest.importorskip("prometheus_client")

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families


@pytest.mark.parametrize(
    ("accept", "parse"),
    [("", text_string_to_metric_families), ("application/openmetrics-text", openmetrics)],
)
def test_prometheus_can_read_it(ask, accept, parse):
    status, _, content = ask("/metrics", Accept=accept)
    assert status == 200
    families = {family.name: family for family in parse(content.decode())}
    ours = {name.removesuffix("_info") for name in families if name.startswith("wallaroo_")}
    assert ours == set(NAMES)
    (dead,) = families["wallaroo_dead_letters"].samples
    assert dead.value == 1
    assert dead.labels["name"] == escaped(NASTY)
    assert b"\x1b" not in content
    calls = families["wallaroo_node_call_seconds"].samples
    counted = {one.labels["le"]: one.value for one in calls if one.name.endswith("_bucket")}
    assert (counted["0.002"], counted["0.01"], counted["+Inf"]) == (0, 4, 4)
    assert "process_resident_memory_bytes" in families


def test_scrapes_at_any_rate_are_answered(ask):
    assert {ask("/metrics")[0] for _ in range(50)} == {200}
