# SPDX-License-Identifier: Apache-2.0
"""The payload of the pre-compiled layers of EthosU."""

from __future__ import annotations

from dataclasses import field

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.compiled import CompiledStream
from ferrule.backends.ethos_u.report import VelaReport
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.graph import Layer


@frozen
class EthosUProgram:
    """A part of a network as one stream; equal programs have equal bytes.

    The stream's inputs and outputs have the names, types and shapes of the network's tensors. Those of its states that
    it keeps in the scratch are inputs and outputs, too, at the same places: the network has them as tensors.
    """

    stream: CompiledStream = field(repr=False)
    report: VelaReport = field(repr=False)


def program_of(layer: Layer) -> EthosUProgram | None:
    """Return the program of a layer; None if it was not compiled for Ethos-U."""
    payload = layer.descriptor.payload if isinstance(layer.descriptor, PreCompiledDescriptor) else None
    return payload if isinstance(payload, EthosUProgram) else None
