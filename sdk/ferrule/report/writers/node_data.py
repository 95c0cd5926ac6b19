# SPDX-License-Identifier: Apache-2.0
"""Node data for Model Explorer, which colours the nodes of a model's graph: a file per model and counter.

A node is named by a tensor that it writes. The file is one `GraphNodeData` of the package `ai-edge-model-explorer`,
which belongs to the graph that the page shows, whatever its id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

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
        return document.name, _values(document.layers, "macs", "constant_bytes")
    report = report_of(document, "node data are values of layers")
    layers = report.layers
    if not any(layer.outputs for layer in layers):
        raise FerruleError(
            "node data need the tensors that each layer writes, and the report does not name them",
            hint="make the report again with this version of Ferrule",
        )
    counts = _values(layers, "count")["count"]
    counters = {report.count.unit: counts, **_values(layers, "share", "macs", "constant_bytes", "scratch_bytes")}
    worked = [(layer.outputs, layer.work) for layer in layers if layer.work is not None]
    if worked:
        moved = {outputs[0]: work.read_bytes + work.written_bytes for outputs, work in worked if outputs}
        counters["transferred-bytes"] = moved
    return report.model.name, counters


def _values(layers: Sequence[LayerPart | LayerInspection], *attributes: str) -> dict[str, _Values]:
    """Return the values of attributes of layers by the names of counters."""
    written = [layer for layer in layers if layer.outputs]
    return {
        name.replace("_", "-"): {layer.outputs[0]: getattr(layer, name) for layer in written} for name in attributes
    }


def _file(counter: str, values: _Values) -> str:
    data = {
        "name": counter.replace("-", " "),
        "results": {tensor: {"value": value} for tensor, value in values.items()},
        "gradient": _GRADIENT,
    }
    # the viewer takes an object with results.results for one by graphs
    whole = {_MAIN: data} if "results" in values else data
    return json.dumps(whole, indent=2) + "\n"
