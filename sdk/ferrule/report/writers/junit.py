# SPDX-License-Identifier: Apache-2.0
"""Verdicts as JUnit XML, which servers for continuous integration read: a suite per document."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ferrule.rendering import shown
from ferrule.report.base import Case, Document, Outcome, Suite

_ATTRIBUTES = {Outcome.FAILURE: "failures", Outcome.ERROR: "errors", Outcome.SKIPPED: "skipped"}


def junit_text(documents: Sequence[Document]) -> str:
    """Return the suites: a case per sample of a run, metric of an evaluation, run of a sweep, or value compared.

    Raises:
        FerruleError: a document has no verdict.
    """
    suites = [document.suite() for document in documents]
    root = Element("testsuites", {"name": "ferrule", **_counts([case for suite in suites for case in suite.cases])})
    del root.attrib["skipped"]  # which only a suite has in the schema
    root.set("time", f"{sum(suite.seconds for suite in suites):.3f}")
    for suite in suites:
        _write(root, suite)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _write(root: Element, suite: Suite) -> None:
    attributes = {"name": suite.name, **_counts(suite.cases), "time": f"{suite.seconds:.3f}"}
    element = SubElement(root, "testsuite", _shown(attributes))
    known = {name: value for name, value in suite.properties.items() if value not in {None, ""}}
    if known:
        properties = SubElement(element, "properties")
        for name, value in known.items():
            SubElement(properties, "property", _shown({"name": name, "value": str(value)}))
    group = f"ferrule.{suite.command}.{suite.model.replace('.', '_').replace(' ', '_')}"
    for case in suite.cases:
        names = {"classname": group, "name": case.name, "time": f"{case.seconds:.3f}"}
        child = SubElement(element, "testcase", _shown(names))
        if case.outcome is Outcome.PASSED:
            if case.text:
                SubElement(child, "system-out").text = shown(case.text)
            continue
        message, _, details = case.text.partition("\n")
        said = {"message": message}
        if case.rule is not None and case.outcome is not Outcome.SKIPPED:
            said["type"] = case.type or case.rule
        SubElement(child, case.outcome, _shown(said)).text = shown(details) or None


def _shown(attributes: dict[str, str]) -> dict[str, str]:
    return {name: shown(value) for name, value in attributes.items()}


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    outcomes = [case.outcome for case in cases]
    return {
        "tests": str(len(cases)),
        **{name: str(outcomes.count(outcome)) for outcome, name in _ATTRIBUTES.items()},
    }
