"""The dashboard, the alert rules and the services' files name what there is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from wallaroo.cli.main import parse
from wallaroo.monitor.families import NAMES

ROOT = Path(__file__).parents[2]
FILES = ROOT / "docs" / "operating"
ENDS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
SERVED = {
    name + end: {*family.labels, "le", "instance"}
    for name, family in NAMES.items()
    for end in ENDS.get(family.kind, ("_info",))
}
WHERE = ("WORKDIR", "VOLUME")
OF_THE_CLIENT = {
    "process_cpu_seconds_total": {"instance"},
    "process_resident_memory_bytes": {"instance"},
    "python_gc_collections_total": {"instance", "generation"},
}


def expressions():
    dashboard = json.loads((FILES / "grafana.json").read_text("utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"], ""
    for group in yaml.safe_load((FILES / "alerts.yml").read_text("utf-8"))["groups"]:
        for rule in group["rules"]:
            yield rule["expr"], rule["annotations"]["summary"].replace("$labels.", "")


@pytest.mark.parametrize(("expression", "words"), sorted(set(expressions())))
def test_each_name_and_label_is_served(expression, words):
    names = re.findall(r"\b(?:wallaroo|process|python)_\w+", expression)
    assert names
    served = SERVED | OF_THE_CLIENT
    assert set(names) <= served.keys()
    labels = set.intersection(*[served[name] for name in names])
    used = set(re.findall(r"\{\{ ?(\w+) ?\}\}", words))
    for inside in re.findall(r"(?:by|on) \(([^)]*)\)", expression):
        used |= set(re.split(r",\s*", inside))
    assert used <= labels


def test_every_figure_has_a_panel():
    panels = json.loads((FILES / "grafana.json").read_text("utf-8"))["panels"]
    shown = "\n".join(target["expr"] for panel in panels for target in panel.get("targets", ()))
    kinds = {name for name, family in NAMES.items() if family.kind != "info"}
    assert {name for name in kinds if not re.search(name + r"(_total|_bucket)?\b", shown)} == set()


@pytest.mark.parametrize(("file", "pattern"), [("wallaroo-orders.service", "^ExecStart=(.*)$")])
def test_the_command_line_of_the_unit_is_one(file, pattern):
    line = re.search(pattern, (FILES / file).read_text("utf-8"), re.MULTILINE)[1]
    program, *arguments = shlex.split(line)
    assert program.endswith("/wallaroo")
    options = parse(arguments)
    assert options.metrics == ("127.0.0.1", 9090)
    assert options.stop_timeout < 30


def test_the_command_line_of_the_container_is_one():
    text = (FILES / "Dockerfile").read_text("utf-8")
    command = json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[1])
    command += json.loads(re.search(r"^CMD (.*)$", text, re.MULTILINE)[1])
    assert command[0] == "wallaroo"
    options = parse(command[1:])
    assert options.metrics == ("0.0.0.0", 9090)
    assert options.stop_timeout < 10
    home, volume = [re.search(rf"^{word} (.*)$", text, re.MULTILINE)[1] for word in WHERE]
    kept = command[command.index("--checkpoint") + 1]
    assert Path(volume) in Path(home, kept).parents


@pytest.mark.parametrize("file", ["wallaroo-orders.service", "Dockerfile"])
def test_the_page_shows_the_files_as_they_are(file):
    page = (ROOT / "docs" / "operating.md").read_text("utf-8")
    assert (FILES / file).read_text("utf-8").strip() in page


def test_the_command_line_of_the_pod_is_one():
    documents = [*yaml.safe_load_all((FILES / "kubernetes.yaml").read_text("utf-8"))]
    (pod,) = [one["spec"]["template"]["spec"] for one in documents if one["kind"] == "StatefulSet"]
    (driver,) = pod["containers"]
    assert driver["command"] == ["wallaroo", "run"]
    arguments: list[str] = driver["args"]
    options = parse(["run", *arguments])
    assert options.engine == "spark"
    assert options.metrics == ("0.0.0.0", driver["readinessProbe"]["httpGet"]["port"])
    assert options.stop_timeout < pod["terminationGracePeriodSeconds"]
    (service,) = [one for one in documents if one["kind"] == "Service"]
    settings = dict(
        [one.removeprefix("--conf=").split("=", 1) for one in arguments if "--conf" in one]
    )
    ports = {str(port["port"]) for port in service["spec"]["ports"]}
    assert {settings["spark.driver.port"], settings["spark.driver.blockManager.port"]} == ports
    assert settings["spark.driver.host"] == service["metadata"]["name"]
