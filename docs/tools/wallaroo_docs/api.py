"""Reference pages of the public API, made from the docstrings and signatures of the code.

The code is read, not imported. A rule's id in a docstring becomes a link to the rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import griffe

from wallaroo_docs.blocks import chapters, rules

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class ApiPage:
    """A page: its name, and the names of a module that it shows, in groups.

    Args:
        name: its file, without the ending.
        title: its heading.
        module: whose names they are.
        groups: names by heading; no names: all that are public, in order of the code.
    """

    name: str
    title: str
    module: str
    groups: dict[str, tuple[str, ...]]


PAGES = (
    ApiPage(
        "language",
        "wallaroo",
        "wallaroo",
        {
            "Applications": ("ApplicationBuilder", "source", "Pipeline", "build_application"),
            "Your functions": (
                *("decoder", "encoder", "computation", "computation_multi"),
                *("state_computation", "state_computation_multi", "partition", "key_extractor"),
            ),
            "Sources and sinks": (
                *("TCPSourceConfig", "TCPSinkConfig", "GenSourceConfig"),
                *("tcp_parse_input_addrs", "tcp_parse_output_addrs"),
            ),
            "Kafka": (
                *("KafkaSourceConfig", "KafkaSinkConfig", "kafka_decoder", "kafka_timestamp"),
                *("KafkaRecord", "KafkaOutput"),
                *("kafka_parse_source_options", "kafka_parse_sink_options"),
                *("DefaultKafkaSourceCLIParser", "DefaultKafkaSinkCLIParser"),
                *("CustomKafkaSourceCLIParser", "CustomKafkaSinkCLIParser"),
            ),
            "Windows": ("range_windows", "count_windows", "session_windows", "Aggregation"),
            "Durations": (
                *("nanoseconds", "microseconds", "milliseconds", "seconds", "minutes"),
                *("hours", "days"),
            ),
            "What is built": ("Application", "Engine"),
            "Errors": (
                *("WallarooError", "WallarooParameterError", "ApplicationLoadError"),
                *("UnsupportedTopology", "FrameError"),
            ),
        },
    ),
    ApiPage(
        "testing",
        "wallaroo.testing",
        "wallaroo.testing",
        {"": ("run", "Session", "Result", "Produced")},
    ),
    ApiPage("records", "wallaroo.records", "wallaroo.records", {}),
    ApiPage("trace", "wallaroo.trace", "wallaroo.trace", {}),
    ApiPage("engine", "wallaroo.engine", "wallaroo.engine", {}),
)
"""The pages, as ``mkdocs.yml`` names them."""


def api_pages() -> dict[str, str]:
    """Return each page's text by its file's name."""
    loaded = griffe.load("wallaroo", search_paths=[ROOT], resolve_aliases=True)
    return {f"{page.name}.md": _Writer().page(page, loaded) for page in PAGES}


class _Writer:
    def __init__(self) -> None:
        self._links = {
            rule: f"../spec/{path.name}#{rule}" for path in chapters() for rule in rules(path)
        }

    def page(self, page: ApiPage, package: griffe.Object | griffe.Alias) -> str:
        inside = page.module.partition(".")[2]
        module = package[inside] if inside else package
        parts = [f"# {page.title}", self._sections(_parsed(module))]
        groups = page.groups or {"": tuple(_public(module))}
        for heading, names in groups.items():
            if heading:
                parts.append(f"## {heading}")
            level = 3 if heading else 2
            for name in names:
                shown = module[name]
                parts += self._object(shown, f"{page.module}.{name}", name, level)
        return "\n\n".join(parts) + "\n"

    def _object(
        self, shown: griffe.Object | griffe.Alias, anchor: str, name: str, level: int
    ) -> Iterator[str]:
        target = shown.final_target if isinstance(shown, griffe.Alias) else shown
        yield f"{'#' * level} `{name}` {{ #{anchor} }}"
        if signatures := list(_signatures(target, name)):
            yield "```python\n{}\n```".format("\n".join(signatures))
        yield self._sections(_parsed(target))
        if isinstance(target, griffe.Class):
            for member in _public(target):
                inner = target.members[member]
                if isinstance(inner, griffe.Function | griffe.Attribute) and inner.docstring:
                    yield from self._object(inner, f"{anchor}.{member}", member, level + 1)

    def _sections(self, sections: list[griffe.DocstringSection]) -> str:
        return "\n\n".join([text for section in sections if (text := self._section(section))])

    def _section(self, section: griffe.DocstringSection) -> str:
        match section:
            case griffe.DocstringSectionText():
                return self._linked(_with_code_blocks(section.value))
            case griffe.DocstringSectionExamples():
                return "\n\n".join(
                    f"```pycon\n{text}\n```"
                    if kind is griffe.DocstringSectionKind.examples
                    else self._linked(text)
                    for kind, text in section.value
                )
            case griffe.DocstringSectionParameters() | griffe.DocstringSectionAttributes():
                rows = [f"- `{one.name}`: {_joined(one.description)}" for one in section.value]
            case griffe.DocstringSectionRaises():
                rows = [
                    f"- raises `{one.annotation}`: {_joined(one.description)}"
                    for one in section.value
                ]
            case griffe.DocstringSectionReturns() | griffe.DocstringSectionYields():
                rows = [f"- returns: {_joined(one.description)}" for one in section.value]
            case _:
                return ""
        return self._linked("\n".join(rows))

    def _linked(self, text: str) -> str:
        """Return text in which the ids of rules are links; code stays as it is."""
        pieces = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
        return "".join(
            piece if number % 2 else _RULE.sub(self._link, piece)
            for number, piece in enumerate(pieces)
        )

    def _link(self, found: re.Match[str]) -> str:
        rule = found[0]
        return f"[{rule}]({self._links[rule]})" if rule in self._links else rule


_RULE = re.compile(r"\b[a-z]+-\d+\b")


def _parsed(shown: griffe.Object | griffe.Alias) -> list[griffe.DocstringSection]:
    return shown.docstring.parse("google", warnings=False) if shown.docstring else []


def _public(shown: griffe.Object | griffe.Alias) -> list[str]:
    return [
        name
        for name, member in shown.members.items()
        if not name.startswith("_")
        and not isinstance(member, griffe.Alias)
        and not member.is_module
        and member.docstring
    ]


def _signatures(shown: griffe.Object, name: str) -> Iterator[str]:
    """Yield the signatures of an object; none if other calls make it."""
    if isinstance(shown, griffe.Class):
        initial = shown.all_members.get("__init__")
        if initial is None:
            return
        overloads = shown.overloads.get("__init__")
        function: griffe.Object = (
            initial.final_target if isinstance(initial, griffe.Alias) else initial
        )
    elif isinstance(shown, griffe.Function):
        function, overloads = shown, shown.overloads
    else:
        return
    ways: list[griffe.Object] = [*overloads] if overloads else [function]
    for each in ways:
        assert isinstance(each, griffe.Function)
        given = _parameters(each)
        if given is not None and not any(text.endswith(": Never") for text in given):
            result = f" -> {each.returns}" if each.returns and each.name == name else ""
            yield _fitted(name, given, result)


def _fitted(name: str, given: list[str], result: str) -> str:
    """Return a call, with a parameter a line where one line is too short."""
    line = f"{name}({', '.join(given)}){result}"
    if len(line) <= 88:
        return line
    inside = "".join(f"    {one},\n" for one in given)
    return f"{name}(\n{inside}){result}"


def _parameters(function: griffe.Function) -> list[str] | None:
    """Return the parameters; `None` if some are not for users."""
    shown: list[str] = []
    keyword_only = False
    for one in function.parameters:
        if one.name in ("self", "cls"):
            continue
        if one.name.startswith("_"):
            return None
        kind = one.kind
        if kind is griffe.ParameterKind.keyword_only and not keyword_only:
            keyword_only = True
            if not any(text.startswith("*") for text in shown):
                shown.append("*")
        star = {
            griffe.ParameterKind.var_positional: "*",
            griffe.ParameterKind.var_keyword: "**",
        }.get(kind, "")
        text = f"{star}{one.name}"
        if one.annotation is not None:
            text += f": {one.annotation}"
        if one.default is not None and not star:
            text += f" = {one.default}" if one.annotation is not None else f"={one.default}"
        shown.append(text)
    return shown


def _joined(text: str) -> str:
    return " ".join(text.split())


def _with_code_blocks(text: str) -> str:
    """Return a docstring's text with its doctests, and what follows ``::``, as code blocks."""
    blocks = []
    for block in text.split("\n\n"):
        if block.lstrip().startswith(">>>"):
            blocks.append(f"```pycon\n{block}\n```")
        elif all(line.startswith("    ") for line in block.splitlines()):
            inside = "\n".join(line[4:] for line in block.splitlines())
            blocks.append(f"```text\n{inside}\n```")
        else:
            blocks.append(re.sub(r"::$", ":", block))
    return "\n\n".join(blocks)
