# SPDX-License-Identifier: Apache-2.0
"""Hashes everything in a graph that the generated code depends on."""

from __future__ import annotations

import hashlib
import io
import pickle
from dataclasses import fields

from ferrule._typing import override
from ferrule.backends import PreCompiledDescriptor
from ferrule.graph import Graph, Layer, Rounding, TensorInfo


def digest(graph: Graph) -> str:
    """Return the SHA-256 of a graph as hexadecimal digits; equal graphs have equal digests on every machine.

    A pre-compiled object that cannot be pickled contributes only its label and its multiply-accumulates.
    """
    sha = hashlib.sha256()
    sha.update(repr((graph.name, [i.name for i in graph.inputs], [o.name for o in graph.outputs])).encode())
    for tensor in graph.tensors:
        sha.update(_described(tensor.info))
        if tensor.data is not None:
            sha.update(tensor.data.tobytes())
    for state in graph.states:
        sha.update(repr((state.name, state.source, state.result)).encode())
        sha.update(state.initial.tobytes())
    for layer in graph.layers:
        sha.update(_layer(layer))
        for inner in layer.descriptor.graphs.values():
            sha.update(digest(inner).encode())
    return sha.hexdigest()


def _described(info: TensorInfo) -> bytes:
    """Return the description of a tensor without its data; a change to this text changes every digest."""
    given = info.quantization
    quantization = (
        "None"
        if given is None
        else f"Quantization(scales={given.scales!r}, zero_points={given.zero_points!r}, axis={given.axis!r})"
    )
    dtype = f"<DataType.{info.dtype.name}: {info.dtype.value!r}>"
    return f"TensorInfo(name={info.name!r}, shape={info.shape!r}, dtype={dtype}, quantization={quantization})".encode()


def _layer(layer: Layer) -> bytes:
    descriptor = layer.descriptor
    if not isinstance(descriptor, PreCompiledDescriptor):
        if not descriptor.graphs:
            return _plain(layer)
        numbers = {
            field.name: getattr(descriptor, field.name)
            for field in fields(descriptor)
            if field.name not in descriptor.graphs
        }
        return repr((layer.name, str(layer.type), layer.inputs, layer.outputs, numbers)).encode()
    known = (layer.name, layer.inputs, layer.outputs, descriptor.label, descriptor.macs)
    return repr(known).encode() + _pickled(descriptor.payload)


def _plain(layer: Layer) -> bytes:
    """Return the description of a layer without graphs; a change to this text changes every digest."""
    known = (layer.name, layer.type, layer.descriptor, layer.inputs, layer.outputs)
    names = ("name", "type", "descriptor", "inputs", "outputs")
    rule = "" if layer.rounding is Rounding.TFLM else f", rounding={layer.rounding.value!r}"
    return f"Layer({', '.join(f'{name}={value!r}' for name, value in zip(names, known, strict=True))}{rule})".encode()


class _Pickler(pickle.Pickler):
    """Pickles graphs by their digests: what a graph keeps beside its contents differs from one process to another."""

    @override
    def reducer_override(self, value: object) -> tuple[type[str], tuple[str]]:
        return (str, (digest(value),)) if isinstance(value, Graph) else NotImplemented


def _pickled(payload: object) -> bytes:
    """Return bytes that are equal for equal values, whether or not they share objects; b"" if it cannot be pickled."""
    file = io.BytesIO()
    pickler = _Pickler(file, protocol=4)
    pickler.fast = True  # without references to objects already written
    try:
        pickler.dump(payload)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError):  # by what the value contains
        return b""
    return file.getvalue()
