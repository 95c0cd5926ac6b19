# SPDX-License-Identifier: Apache-2.0
"""Checks that a text is well-formed in a format of reports, by the rules of the format's own readers."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

JUNIT: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"name"}, {"time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"skipped", "time", "timestamp", "hostname", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": ({"name"}, {"classname", "time"}, {"failure", "error", "skipped", "system-out", "system-err"}),
    "failure": (set(), {"message", "type"}, set()),
    "error": (set(), {"message", "type"}, set()),
    "skipped": (set(), {"message"}, set()),
    "system-out": (set(), set(), set()),
    "system-err": (set(), set(), set()),
}
"""By element, as in the schema junit-10 of Jenkins' xUnit plugin: required and optional attributes, and children."""


def check_junit(text: str) -> ElementTree.Element:
    """Return the root of JUnit XML; AssertionError if a server would refuse it, or its counts are wrong."""
    root = ElementTree.fromstring(text.encode())  # noqa: S314 written by Ferrule
    assert root.tag == "testsuites"
    for element in root.iter():
        required, optional, children = JUNIT[element.tag]
        assert required <= element.attrib.keys() <= required | optional, element.tag
        assert {child.tag for child in element} <= children, element.tag
        assert re.fullmatch(r"\d+\.\d{3}", element.get("time", "0.000"))
    for group in (root, *root.iter("testsuite")):
        cases = list(group.iter("testcase"))
        assert int(group.attrib["tests"]) == len(cases)
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if attribute in group.attrib:
                assert int(group.attrib[attribute]) == sum(case.find(tag) is not None for case in cases)
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(names)) == len(names)
    return root


def check_sarif(text: str) -> list[dict[str, Any]]:
    """Return the results of a SARIF file; AssertionError if it breaks a rule of SARIF 2.1.0 or of code scanning."""
    log = json.loads(text)
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run.keys() <= {"tool", "automationDetails", "invocations", "columnKind", "results"}
    assert isinstance(run["invocations"][0]["executionSuccessful"], bool)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    assert run["tool"]["driver"]["name"]
    for result in run["results"]:
        assert result.keys() == {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"}
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert re.fullmatch(r"ferrule/[a-z-]+", result["ruleId"])
        assert result["level"] in {"error", "warning", "note", "none"}
        assert result["message"]["text"]
        assert not re.search(r"(?<!\\)\]\(|(?<!\{)\{\d+\}", result["message"]["text"])
        assert re.fullmatch(r"[0-9a-f]{64}", result["partialFingerprints"]["ferrule/v1"])
        for location in result["locations"]:
            assert location.keys() <= {"physicalLocation", "logicalLocations"}
            _check_place(location.get("physicalLocation"))
            for place in location["logicalLocations"]:
                assert place.keys() == {"name", "fullyQualifiedName", "kind"}
                assert place["name"]
    return list(run["results"])


def _check_place(place: dict[str, Any] | None) -> None:
    if place is None:
        return
    uri = place["artifactLocation"]["uri"]
    parts = urlsplit(uri)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("", "", "", "")
    assert uri.isascii()
    assert not uri.startswith("/")
    assert place["region"]["startLine"] >= 1


def check_trace(text: str) -> list[dict[str, Any]]:
    """Return the events of a Chrome JSON trace; AssertionError if they do not nest, or a thread has no name."""
    trace = json.loads(text)
    named = set()
    open_until: dict[tuple[int, int], list[int]] = {}
    for event in trace["traceEvents"]:
        thread = (event["pid"], event["tid"])
        if event["ph"] == "M":
            assert event["name"] in {"process_name", "thread_name"}
            assert isinstance(event["args"]["name"], str)
            named.add((event["name"], *thread))
        elif event["ph"] == "X":
            assert ("thread_name", *thread) in named
            assert event["dur"] >= 0
            ends = open_until.setdefault(thread, [])
            while ends and ends[-1] <= event["ts"]:
                ends.pop()
            assert not ends or event["ts"] + event["dur"] <= ends[-1]
            ends.append(event["ts"] + event["dur"])
        else:
            assert event["ph"] == "C"
            assert all(isinstance(value, int) for value in event["args"].values())
    return list(trace["traceEvents"])


def check_node_data(text: str) -> dict[str, int | float]:
    """Return the values of node data by tensor; AssertionError if Model Explorer would not read or colour them."""
    data = json.loads(text)
    # the viewer's own test for an object by graphs
    by_graph = data.get("results") is None or data["results"].get("results") is not None
    if by_graph:
        (data,) = data.values()
    assert data.keys() == {"name", "results", "gradient"}
    stops = [item["stop"] for item in data["gradient"]]
    assert (stops[0], stops[-1]) == (0, 1)
    assert all(re.fullmatch(r"#[0-9a-f]{6}", item["bgColor"]) for item in data["gradient"])
    assert all(value.keys() == {"value"} for value in data["results"].values())
    return {tensor: value["value"] for tensor, value in data["results"].items()}


def check_csv(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file; AssertionError if they are uneven, or a spreadsheet would compute a cell."""
    lines = list(csv.reader(io.StringIO(text), strict=True))
    headings, *rows = lines
    assert len(set(headings)) == len(headings)
    assert all(len(row) == len(headings) for row in rows)
    for cell in (cell for row in lines for cell in row):
        assert cell.isprintable()
        number = re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell)
        assert number or cell.lstrip(" ")[:1] not in set("=+-@\t\r＝＋－＠"), cell
    return [dict(zip(headings, row, strict=True)) for row in rows]


def check_markdown(text: str) -> list[str]:
    """Return the texts of a page's paragraphs, headings and cells; AssertionError if a row of a table has cells too
    many, or the page has HTML, links or pictures.
    """
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    texts, columns, cells = [], 0, 0
    for token in tokens:
        assert token.type != "html_block"
        if token.type == "tr_open":
            cells = 0
        cells += token.type in {"th_open", "td_open"}
        if token.type == "thead_close":
            columns = cells
        if token.type == "tr_close" and columns:
            assert cells == columns
        columns = 0 if token.type == "table_close" else columns
        if token.type in {"fence", "code_block"}:
            texts.append(token.content)
        if token.type == "inline":
            kinds = {child.type for child in token.children or ()}
            assert kinds <= {"text", "text_special", "strong_open", "strong_close", "softbreak", "code_inline"}, (
                kinds,
                token.content,
            )
            texts.append("".join(child.content for child in token.children or ()))
    return texts
