# SPDX-License-Identifier: Apache-2.0
"""What is remarkable about a device of a run that has not failed: a warning beside the verdict on each page."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from saved_documents import evaluation_document, run_document

from ferrule.report.base import Document
from ferrule.report.console import print_report
from ferrule.report.duration import DurationPart, WaitPart
from ferrule.report.html import html_page
from ferrule.report.run_document import ReportDocument
from ferrule.report.sections import Conclusion, Only, State
from ferrule.report.writers.markdown import markdown_text

MASKED = "interrupt 3 was masked and not enabled again; the device has raised it twice"


def noted(*notes: str, late: bool = False) -> ReportDocument:
    """Return a run whose device has notes, and may be late."""
    document = run_document()
    (device,) = document.devices
    wait = WaitPart(device=device.name, awake=1, asleep=9, waits=1, limited=int(late), late=8 * late)
    duration = DurationPart(unit="cycles", elapsed=20, work=10, waits=(wait,))
    device = replace(device, notes=notes, registers={"STATUS": 1} if notes else {})
    return replace(document, devices=(device,), duration=duration)


def conclusions(document: ReportDocument) -> list[tuple[str, State]]:
    shown = document.sections().shown(Only.PAGES)
    return [(each.words, each.state) for each in shown if isinstance(each, Conclusion)]


def printed(document: Document) -> str:
    out = io.StringIO()
    print_report(document, Console(file=out, width=200))
    return out.getvalue()


def test_a_note_is_a_warning_beside_the_verdict() -> None:
    document = noted(MASKED, "it is slow")
    name = document.devices[0].name
    assert conclusions(document) == [(f"look at device {name}", State.WARN), ("exact", State.GOOD)]
    assert all(case.rule is None for case in document.suite().cases), "the outputs are right"
    for text in (markdown_text([document]), html_page(document)):
        assert text.count(f"I{MASKED[1:]}; it is slow.") == 1
        assert MASKED not in text, "once is enough"
    lines = printed(document).splitlines()
    assert f"note: device {name}: {MASKED}" in lines
    assert lines[-2:] == [f"note: look at device {name}", "verdict: exact"]


def test_a_device_without_notes_has_none() -> None:
    assert conclusions(noted()) == [("exact", State.GOOD)]
    assert "look at" not in printed(noted())


def test_a_device_that_is_late_has_one_warning() -> None:
    """Its notes say why, below the figures."""
    document = noted(MASKED, late=True)
    name = document.devices[0].name
    assert conclusions(document) == [(f"device {name} is late", State.WARN), ("exact", State.GOOD)]
    for text in (markdown_text([document]), html_page(document), printed(document)):
        assert text.count(MASKED) == 1


@pytest.mark.parametrize("notes", [(), (MASKED,)])
def test_the_proof_of_an_evaluation_has_the_warning(notes: tuple[str, ...]) -> None:
    document = evaluation_document()
    assert document.proof is not None
    document = replace(document, proof=replace(document.proof, report=noted(*notes)))
    name = noted().devices[0].name
    assert (f"note: look at device {name}" in printed(document)) == bool(notes)
    assert (f"note: device {name}: {MASKED}" in printed(document)) == bool(notes)
    assert (f"I{MASKED[1:]}" in markdown_text([document])) == bool(notes)
