# SPDX-License-Identifier: Apache-2.0
"""Quantises layers by ai-edge-quantizer, which gets the ranges from us."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path

from ferrule.child_process import last_lines
from ferrule.errors import FerruleError, MissingToolError
from ferrule.formats import load, to_tflite
from ferrule.graph import Layer, LayerType
from ferrule.interface import name_of
from ferrule.kept_process import KeptDiedError, KeptProcess
from ferrule.network import Network
from ferrule.quantization.biases import without_large_biases
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import Range
from ferrule.quantization.surgery import foreign_layers, with_layers, without_layers
from ferrule.scratch import ScratchFolder

_LIMIT_S = 600.0
_ATTEMPTS = 2
"""How often a model is given to the library, whose process something else may have killed."""
_MOST = 100
"""The models after which the library's process is replaced, whatever it keeps of them."""
_PROCESS = KeptProcess(Path(__file__).with_name("library_child.py"), _MOST)
"""The library takes a second to start, and a search quantises many models."""
_NAMES = {LayerType.TRANSPOSE_CONV: "CONV_2D_TRANSPOSE"}
"""The library's names of operators that differ from TensorFlow Lite's."""


def with_integers(network: Network, ranges: Mapping[str, Range], precisions: Mapping[str, Precision]) -> Network:
    """Return a float network with the layers quantised that the library can quantise; the others stay in float32.

    `precisions` are those of the layers by name. Inputs and outputs stay in float32, too: the library quantises all of
    them or none.

    Raises:
        MissingToolError: the library is not installed.
        FerruleError: the library refuses the model.
    """
    check_installed()
    whole, foreign = network, foreign_layers(network)
    network = without_layers(network, foreign)
    layers = [
        (_scope(layer.outputs), _NAMES.get(layer.type, str(layer.type)), precisions[layer.name].bits)
        for layer in network.layers
        if precisions[layer.name] is not Precision.FLOAT and _is_read(network, layer)
    ]
    limits = {name: (range_.quantizable.low, range_.quantizable.high) for name, range_ in ranges.items()}
    with ScratchFolder() as scratch:
        folder = scratch.path
        # it quantises shared bytes once, though the weights of two layers may have their channels on different axes
        plain = to_tflite(without_large_biases(network, ranges, precisions), shared=False)
        (folder / "model.tflite").write_bytes(plain)
        request = {"layers": layers, "ranges": limits}
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        refusal = _asked(folder)
        if refusal:
            raise FerruleError(
                f"ai-edge-quantizer refuses '{network.name}': {refusal}",
                hint=f"a layer that it names can stay in float32: {name_of('keep')}",
            )
        result = load((folder / "result.tflite").read_bytes(), network.name)
        return with_layers(result, network, whole, foreign)


def _asked(folder: Path) -> str:
    """Let the library quantise the model of a folder; return "" or why it has not."""
    refusal = ""
    for attempt in range(_ATTEMPTS):
        log = folder / f"log{attempt}"
        try:
            return _PROCESS.run(log, [str(folder)], _LIMIT_S)
        except KeptDiedError as death:
            said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
            refusal = "\n".join([f"its process ended with {death}", *last_lines(said)])
        except TimeoutError:
            return f"it did not end within {_LIMIT_S:g} s"
        except OSError as error:
            return f"its process cannot be started: {error.strerror or error}"
    return refusal


def _is_read(network: Network, layer: Layer) -> bool:
    """Return whether each output of a layer has a reader; the library leaves one without in float32, and only that."""
    handed_out = {info.name for info in network.results}
    return all(name in handed_out or network.consumers(name) for name in layer.outputs)


def check_installed() -> None:
    """Raise MissingToolError unless the library is installed."""
    if importlib.util.find_spec("ai_edge_quantizer") is None:
        raise MissingToolError(
            "the Python package ai-edge-quantizer is not installed, which writes the integers",
            hint="pip install 'ferrule[quantize]'",
        )


def _scope(outputs: tuple[str, ...]) -> str:
    """Return the expression by which the library finds an operator: each of its outputs with a semicolon."""
    return f"^{re.escape(''.join(f'{name};' for name in outputs))}$"
