# SPDX-License-Identifier: Apache-2.0
"""Networks and documents as notebooks show them: parts of a page, in which names are text."""

from __future__ import annotations

import pytest
from page_reader import Page
from saved_documents import documents

import ferrule
from ferrule.evaluation.evaluate import Evaluation
from ferrule.network import Network
from ferrule.report import RunReport
from ferrule.report.base import Document, part_of
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.run_document import ReportDocument

NAMES = {
    "script": "</script><script>alert(1)</script>",
    "closing": "</title></style></svg></bdi></pre>--><b>",
    "attribute": "\" onmouseover=alert(1) x='",
    "image": "<img src=x onerror=alert(1)>",
    "entity": "&lt;b&gt; &amp; &#60;",
    "template": "{{ 7 * 7 }}{% raw %}",
    "right to left": "user\u202egnp.exe\u2066\u200f",
}
PRINTABLE = {key: name for key, name in NAMES.items() if name.isprintable()}
"""Others are none of a network."""


def unfinished(name: str) -> Network:
    network = Network(name)
    network.add_input(ferrule.TensorInfo("x", (1, 4), ferrule.DataType.FLOAT32))
    return network


def finished(name: str, layer: str) -> Network:
    network = unfinished(name)
    network.set_outputs([network.add_softmax_layer("x", name=layer)])
    return network


@pytest.mark.parametrize("name", PRINTABLE.values(), ids=PRINTABLE)
def test_a_network_is_a_part_of_a_page(name: str) -> None:
    page = finished(name, name)._repr_html_()
    assert page.startswith("<style>")
    assert not {"html", "head", "body"} & {tag for tag, _ in Page(page).structure}
    assert Page(page).structure == Page(finished("plain", "y")._repr_html_()).structure
    assert "SOFTMAX" in Page(page).text


@pytest.mark.parametrize("name", PRINTABLE.values(), ids=PRINTABLE)
def test_a_network_without_layers_is_shown(name: str) -> None:
    page = unfinished(name)._repr_html_()
    assert not {"html", "body", "script", "img", "b"} & {tag for tag, _ in Page(page).structure}


def test_a_network_that_cannot_be_inspected_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ferrule.FerruleError("it is <b>wrong</b>")

    monkeypatch.setattr(ferrule, "inspect", refuse)
    page = finished("<i>", "y")._repr_html_()
    assert [tag for tag, _ in Page(page).structure] == ["pre"]
    assert "it is <b>wrong</b>" in Page(page).text


@pytest.mark.parametrize("kind", documents())
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_what_python_returns_is_a_part_of_a_page(kind: str, name: str) -> None:
    def returned(document: Document) -> Document:
        match document:
            case ReportDocument():
                return RunReport.of(document, [])
            case EvaluationDocument():
                return part_of(Evaluation, document, outputs=[], notes=())
            case _:
                return document

    page = returned(documents(name)[kind])._repr_html_()
    assert not {"html", "head", "body", "script"} & {tag for tag, _ in Page(page).structure}
    assert Page(page).structure == Page(returned(documents("plain")[kind])._repr_html_()).structure
