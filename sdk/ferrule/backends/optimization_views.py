# SPDX-License-Identifier: Apache-2.0
"""What a backend makes of a subgraph that it was offered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferrule.errors import FerruleError
from ferrule.graph import Descriptor, Layer, LayerType, SubgraphView, Tensor, TensorInfo

ModelOptions = Mapping[str, bool | int | float | str]
"""The user's options for one backend while it optimises."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreCompiledDescriptor(Descriptor):
    """PRE_COMPILED: an object that the backend that made it, and nobody else, can run."""

    payload: object = field(repr=False)
    """Must be picklable and comparable by value where the network is to be cached; else any object."""
    label: str = "pre-compiled"
    """For reports."""
    macs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """Layers that take the place of others.

    The replacement reads and writes the tensors of the replaced layers' border by their names: it may read any of
    `replaced.inputs` (and constants of the graph, and `constants`), and it writes all of `replaced.outputs`.
    """

    replaced: SubgraphView
    layers: tuple[Layer, ...]
    """In an order that can be executed. Names are new in the graph, or those of replaced layers."""
    tensors: tuple[TensorInfo, ...] = ()
    """Tensors between the new layers; those of `replaced.outputs` keep what is known of them."""
    constants: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizationViews:
    """Every layer of the offered subgraph stands in exactly one of the four lists."""

    substitutions: tuple[Substitution, ...] = ()
    failed: tuple[SubgraphView, ...] = ()
    """Cannot run here after all: offered to the next backend."""
    untouched: tuple[SubgraphView, ...] = ()
    """Run here as they are."""
    deleted: tuple[SubgraphView, ...] = ()
    """Not needed: each has one input and one output of the same shape and type, and readers of the output read the
    input instead."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why, for reports: by the name of a failed layer."""


class InvalidViewsError(FerruleError):
    """What a backend returned does not cover the subgraph, or does not fit into the graph."""


def pre_compiled(name: str, view: SubgraphView, descriptor: PreCompiledDescriptor) -> Substitution:
    """Return the substitution of a whole subgraph by one PRE_COMPILED layer with the same border."""
    layer = Layer(
        name=name, type=LayerType.PRE_COMPILED, descriptor=descriptor, inputs=view.inputs, outputs=view.outputs
    )
    return Substitution(replaced=view, layers=(layer,))


def untouched(view: SubgraphView) -> OptimizationViews:
    """Return the answer of a backend that runs everything as it is."""
    return OptimizationViews(untouched=(view,) if view.names else ())
