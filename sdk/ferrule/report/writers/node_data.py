# SPDX-License-Identifier: Apache-2.0
"""Node data for Model Explorer, which colours the nodes of a model's graph: a file per model and counter.

A node is named by a tensor that it writes. The file is one `GraphNodeData` of the package `ai-edge-model-explorer`,
which belongs to the graph that the page shows, whatever its id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from ferrule.errors import FerruleError
from ferrule.report.base import Document
from ferrule.report.document import LayerPart
from ferrule.report.evaluation_document import report_of
from ferrule.report.inspection import Inspection
from ferrule.report.inspection_parts import LayerInspection

_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#d7641a"}]
_MAIN = "main"
"""The id of the graph in files that converters write."""
_Values = Mapping[str, int | float]
"""By the name of a tensor that the node writes."""


def node_data_files(documents: Sequence[Document]) -> Mapping[str, str]:
    """Return the files by name, such as "kws.instructions.json".

    Raises:
        FerruleError: a document has no layers, or does not name the tensors that they write.
    """
    files: dict[str, str] = {}
    for document in documents:
        model, counters = _counters(document)
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", model)[:80].lstrip(".") or "model"
        number = 1
        while any(f"{_numbered(stem, number)}.{counter}.json" in files for counter in counters):
            number += 1
        for counter, values in counters.items():
            files[f"{_numbered(stem, number)}.{counter}.json"] = _file(counter, values)
    return files


def _numbered(stem: str, number: int) -> str:
    return stem if number == 1 else f"{stem}-{number}"


def _counters(document: Document) -> tuple[str, dict[str, _Values]]:
    if isinstance(document, Inspection):
        return document.name, {
            "macs": _values((layer, layer.macs) for layer in document.layers),
            "constant-bytes": _values((layer, layer.constant_bytes) for layer in document.layers),
        }
    report = report_of(document, "node data are values of layers")
    layers = report.layers
    if not any(layer.outputs for layer in layers):
        raise FerruleError(
            "node data need the tensors that each layer writes, and the report does not name them",
            hint="make the report again with this version of Ferrule",
        )
    counters = {
        report.count.unit: _values((layer, layer.count) for layer in layers),
        "share": _values((layer, layer.share) for layer in layers),
        "macs": _values((layer, layer.macs) for layer in layers),
        "constant-bytes": _values((layer, layer.constant_bytes) for layer in layers),
        "scratch-bytes": _values((layer, layer.scratch_bytes) for layer in layers),
    }
    worked = [(layer, layer.work) for layer in layers if layer.work is not None]
    if worked:
        counters["transferred-bytes"] = _values((layer, work.read_bytes + work.written_bytes) for layer, work in worked)
    return report.model.name, counters


def _values(pairs: Iterable[tuple[LayerPart | LayerInspection, int | float]]) -> _Values:
    return {layer.outputs[0]: value for layer, value in pairs if layer.outputs}


def _file(counter: str, values: _Values) -> str:
    data = {
        "name": counter.replace("-", " "),
        "results": {tensor: {"value": value} for tensor, value in values.items()},
        "gradient": _GRADIENT,
    }
    # the viewer takes an object with results.results for one by graphs
    whole = {_MAIN: data} if "results" in values else data
    return json.dumps(whole, indent=2) + "\n"
