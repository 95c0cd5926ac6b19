# SPDX-License-Identifier: Apache-2.0
"""A backend's answer to a subgraph that it was offered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol, runtime_checkable

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.graph import Descriptor, Graph, Layer, LayerType, SubgraphView, Tensor, TensorInfo

ModelOptions = Mapping[str, bool | int | float | str]
"""The user's options for one backend and one model, by name."""


@frozen
class EstimatedMemory:
    """The use of one memory in one run of a pre-compiled layer."""

    name: str
    cycles: int
    """Cycles in which it is accessed."""
    read_bytes: int
    written_bytes: int


@frozen
class Estimate:
    """What a compiler expects of a pre-compiled layer; nothing of it is measured. Reports mark it as estimated."""

    source: str
    """Who states it, and for which configuration."""
    clock_hz: int
    """Of the device, as the compiler assumes it."""
    cycles: int
    """Of one run, in cycles of the device."""
    layers: tuple[tuple[str, int], ...] = ()
    """The cycles of each replaced layer, by name."""
    memories: tuple[EstimatedMemory, ...] = ()
    warnings: tuple[str, ...] = ()
    """The compiler's own."""


@frozen(eq=False)
class PreCompiledDescriptor(Descriptor):
    """The descriptor of PRE_COMPILED: an object that only the backend that made it can run."""

    payload: object = field(repr=False)
    """Any object; it must be picklable and comparable by value if the network is to be cached."""
    label: str = "pre-compiled"
    """The layer's name in reports."""
    macs: int = 0
    estimate: Estimate | None = field(default=None, repr=False)
    """What its compiler expects of it; None if the compiler does not say."""


@runtime_checkable
class LayeredPayload(Protocol):
    """A payload that computes the layers of a graph one by one, each with the bits of the layer alone."""

    @property
    def layers(self) -> Graph:
        """The layers."""


@frozen
class Substitution:
    """Layers that replace others.

    The new layers use the tensors at the border of the replaced layers by name: they may read any of
    `replaced.inputs`, constants of the graph and `constants`, and they must write all of `replaced.outputs`.
    """

    replaced: SubgraphView
    layers: tuple[Layer, ...]
    """The new layers in an order of execution. Their names are new in the graph, or names of replaced layers."""
    tensors: tuple[TensorInfo, ...] = ()
    """Tensors between the new layers; `replaced.outputs` keep their shapes, types and quantization."""
    constants: tuple[Tensor, ...] = ()


@frozen
class OptimizationViews:
    """A backend's answer: every layer of the offered subgraph is in exactly one of the four lists."""

    substitutions: tuple[Substitution, ...] = ()
    failed: tuple[SubgraphView, ...] = ()
    """Layers that this backend cannot run after all; they are offered to the next backend."""
    untouched: tuple[SubgraphView, ...] = ()
    """Layers that this backend runs unchanged."""
    deleted: tuple[SubgraphView, ...] = ()
    """Layers that are not needed: each view has one input and one output of the same shape and type, and readers of the
    output read the input instead."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons for reports, by the name of a failed layer."""


class InvalidViewsError(FerruleError):
    """A backend returned views that do not cover the subgraph or do not fit into the graph."""


def pre_compiled(name: str, view: SubgraphView, descriptor: PreCompiledDescriptor) -> Substitution:
    """Return the substitution of a whole subgraph by one PRE_COMPILED layer with the same border."""
    layer = Layer(name, LayerType.PRE_COMPILED, descriptor, inputs=view.inputs, outputs=view.outputs)
    return Substitution(replaced=view, layers=(layer,))


def untouched(view: SubgraphView) -> OptimizationViews:
    """Return the answer of a backend that runs the whole subgraph unchanged."""
    return OptimizationViews(untouched=(view,) if view.names else ())
