# SPDX-License-Identifier: Apache-2.0
"""MEM_COPY, MEM_IMPORT, FALLBACK_IMPORT and DEBUG: layers that the optimizer inserts; they leave values unchanged."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Descriptor, LayerType
from ferrule.operators.operator import Operands, Operator, of_one


@frozen
class MemCopyDescriptor(Descriptor):
    """One input, one output. The bytes are copied for a reader on another backend or device."""


@frozen
class MemImportDescriptor(Descriptor):
    """One input, one output. The memory is passed to a reader on another backend without a copy."""


@frozen
class FallbackImportDescriptor(Descriptor):
    """One input, one output. Both tensors are in the same memory, which both backends import at load."""

    source_backend: str
    """The backend that computes the tensor; "" for an input of the network."""
    source_factory: str
    """The tensor handle factory of the input."""
    target_factory: str
    """The tensor handle factory of the output; "" for plain memory of the process."""
    memory: int
    """The kinds of memory that the handles import, as flags: 1 plain, 2 dma-buf, 4 protected dma-buf, 8 device."""
    alignment_bytes: int
    """The alignment that suits both ends."""


@frozen
class DebugDescriptor(Descriptor):
    """One input, one output; the runtime decides how the values are shown."""

    layer: str
    """The layer that computed the values."""
    output: int = 0
    """Index of the layer's output that is shown."""


def check(_: Descriptor, operands: Operands) -> None:
    """Refuse an output that differs from the input in type or quantisation."""
    source, output = operands.ends
    if output.dtype is not source.dtype:
        raise UnsupportedError(f"tensor '{output.name}' is {output.dtype}, expected {source.dtype} as '{source.name}'")
    if output.quantization != source.quantization:
        raise UnsupportedError(f"tensor '{output.name}' has another quantisation than '{source.name}'")


MEM_COPY, MEM_IMPORT, FALLBACK_IMPORT, DEBUG = (
    Operator(descriptor=descriptor, type=type_, check=check, kernel=of_one(lambda _, __, data: data))
    for type_, descriptor in (
        (LayerType.MEM_COPY, MemCopyDescriptor),
        (LayerType.MEM_IMPORT, MemImportDescriptor),
        (LayerType.FALLBACK_IMPORT, FallbackImportDescriptor),
        (LayerType.DEBUG, DebugDescriptor),
    )
)
