# SPDX-License-Identifier: Apache-2.0
"""A graph whose layers have been lowered, in the order in which they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import CoreFeatures, FirmwareTarget, LoweredOp, LoweringContext
from ferrule.codegen.names import Names
from ferrule.dom import AddressOf, Expression, Identifier, Index
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Graph, Layer

ARENA = Identifier("sram")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredLayer:
    """A layer, who runs it, and its C."""

    layer: Layer
    backend: BackendId
    device: str
    """Name of the device instance; the backend's id where there are none."""
    symbol: str
    """The C identifier that the layer's offsets start with."""
    op: LoweredOp


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredGraph:
    """All layers lowered; the names that the executor uses for tensors."""

    graph: Graph
    symbol: str
    """The model's C identifier, such as kws_ref_model."""
    layers: tuple[LoweredLayer, ...]
    """In the order in which they run."""
    variables: Mapping[str, str]
    """The executor's local pointer variable of each tensor that is not a constant."""


def scratch_offset(symbol: str) -> str:
    """Return the enumerator of the offset of a layer's scratch."""
    return f"{symbol}_SCRATCH".upper()


def lower(
    graph: Graph,
    order: Sequence[str],
    targets: Mapping[str, tuple[BackendId, FirmwareTarget]],
    core: CoreFeatures,
    devices: Mapping[str, Device],
) -> LoweredGraph:
    """Lower every layer by the target, and for the device, that it is assigned to.

    Raises:
        UnsupportedError: a target refuses a layer; the message names both.
    """
    names = Names()
    symbol = Names().take(graph.name)
    symbols = {layer.name: names.take(layer.name) for layer in graph.layers}
    variables = _variables(graph, names)
    pointers: dict[str, Expression] = {name: Identifier(variable) for name, variable in variables.items()}
    lowered = []
    for layer in map(graph.layer, order):
        backend, target = targets[layer.name]
        device = devices.get(layer.name)
        context = LoweringContext(
            graph=graph,
            layer=layer,
            core=core,
            prefix=f"ferrule_{symbol}_{symbols[layer.name]}",
            pointers=pointers,
            scratch=AddressOf(Index(ARENA, Identifier(scratch_offset(symbols[layer.name])))),
            device=device,
        )
        lowered.append(
            LoweredLayer(
                layer=layer,
                backend=backend,
                device=str(backend) if device is None else device.name,
                symbol=symbols[layer.name],
                op=_lower(context, backend, target),
            )
        )
    return LoweredGraph(graph=graph, symbol=symbol, layers=tuple(lowered), variables=variables)


def _variables(graph: Graph, names: Names) -> dict[str, str]:
    """Return readable variables: inputs and outputs keep their names, others are called after their layers."""
    variables = {info.name: names.take(info.name) for info in graph.inputs}
    for info in graph.outputs:
        if info.name not in variables and not graph.tensor(info.name).is_constant:
            variables[info.name] = names.take(info.name)
    for layer in graph.layers:
        for name in layer.outputs:
            if name not in variables:
                variables[name] = names.take(f"{layer.name}_out")
    return variables


def _lower(context: LoweringContext, backend: BackendId, target: FirmwareTarget) -> LoweredOp:
    try:
        return target.lower(context)
    except UnsupportedError:
        raise
    except FerruleError as error:
        layer = context.layer
        raise UnsupportedError(f"backend {backend} refuses layer '{layer.name}' ({layer.type}): {error}") from error
