"""What a session is started with."""

from __future__ import annotations

import pytest
from wallaroo_spark.jvm.settings import SessionSettings


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]"])
def test_inside_one_jvm_connections_need_a_secret(tmp_path, master):
    assert SessionSettings(master).spark_conf(tmp_path)["spark.authenticate"] == "true"
    off = SessionSettings(master, conf={"spark.authenticate": "false"})
    assert off.spark_conf(tmp_path)["spark.authenticate"] == "false"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "local-cluster[2,1,1024]"])
def test_on_a_cluster_its_own_settings_decide(tmp_path, master):
    assert "spark.authenticate" not in SessionSettings(master).spark_conf(tmp_path)
