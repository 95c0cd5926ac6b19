# SPDX-License-Identifier: Apache-2.0
"""Lowers the layers of a graph to C, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ferrule.backends import BackendId, BrokenBackendError, Device, Target
from ferrule.backends.firmware import FirmwareTarget, LoweredOp, LoweringContext, scratch_offset
from ferrule.codegen.device_code import chosen, copied, handle_of
from ferrule.codegen.device_use import DeviceUse, tensor_memories, used_devices
from ferrule.codegen.names import Names
from ferrule.codegen.schedule import Call
from ferrule.dom import AddressOf, Evaluate, Expression, Identifier, Index, Integer, Null
from ferrule.dom import Call as CallExpression
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Graph, Layer, LayerType
from ferrule.memory import Region, home, scratch_name, spare_bytes

ARENA = Identifier("sram")
STATE = "state"
"""The executor's variable for the memory of the states, and the region of the plan for it."""
_RESERVED = (STATE, "state_word")
"""Names of tensors that the executor of a model with state needs itself."""
CORE = "cpu"
"""The core among the bus masters, as in board.toml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredLayer:
    """A layer with its backend, its device and its C code."""

    layer: Layer
    backend: BackendId
    device: str
    """Name of the device instance."""
    symbol: str
    """The C identifier at the start of the layer's offset names."""
    op: LoweredOp
    use: DeviceUse | None = None
    """The device that runs the layer through the device API; None on the core."""
    call: Call | None = None
    """The layer's own device call: COPY_TO, COPY_FROM or RUN; None on the core and for a layer without code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredGraph:
    """A graph with all layers lowered, and the names that the executor uses for tensors."""

    graph: Graph
    symbol: str
    """The model's C identifier, such as kws_ref_model."""
    layers: tuple[LoweredLayer, ...]
    """The layers, in the order in which they run."""
    variables: Mapping[str, str]
    """The executor's local pointer variable for each non-constant tensor."""
    devices: tuple[DeviceUse, ...] = ()
    """The devices, ordered by their numbers."""
    memories: Mapping[str, DeviceUse] = field(default_factory=dict)
    """The device of each tensor that is in a device's own memory."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """By layer that its device only begins at its place: the index of the layer after which its result is collected."""
    others: tuple[Region, ...] = ()
    """The memories besides the workspace that the core shares with devices, or that scratch names; they have the names
    of C variables."""
    named: Mapping[str, Region] = field(default_factory=dict)
    """The memories of the board that scratch may name."""


def fed_input(layers: Iterable[LoweredLayer]) -> str:
    """Return the input of the graph whose rows are given one by one; "" if there is none."""
    return next((str(item.layer.inputs[0]) for item in layers if item.op.feed is not None), "")


def scratches(item: LoweredLayer) -> Iterator[tuple[str, str, int]]:
    """Yield each scratch of a layer: its name in a plan, the enumerator of its offset, and its size in bytes."""
    usual = ("", item.op.scratch_bytes)
    for part, size_bytes in (usual, *((each.name, each.size_bytes) for each in item.op.scratches)):
        if size_bytes:
            yield scratch_name(item.layer.name, part), scratch_offset(item.symbol, part), size_bytes


def offset_name(variable: str) -> str:
    """Return the name of the enumerator for a tensor's offset in its memory."""
    return f"{variable}_OFFSET".upper()


def lower(
    graph: Graph,
    order: Sequence[str],
    firmware: Mapping[str, FirmwareTarget],
    targets: Mapping[str, Target],
    memories: Sequence[Region] = (),
    pool: Sequence[Device] = (),
    named: Mapping[str, Region] | None = None,
) -> LoweredGraph:
    """Lower every layer exactly once, with its firmware face and for its target.

    `memories` are those that the core shares with devices, the workspace first; if there are none, every device reaches
    the workspace. `pool` are the devices of pools, with their bindings. `named` are the memories of the board that
    scratch may name.

    Raises:
        UnsupportedError: a backend refuses a layer; the message names both.
        FerruleError: a layer reads a tensor in a memory that it cannot reach.
    """
    names = Names()
    symbol = Names().take(graph.name)
    symbols = {layer.name: names.take(layer.name) for layer in graph.layers}
    given, devices = used_devices(order, firmware, targets, pool)
    places = _places(graph, devices, (*memories[1:], *(named or {}).values()))
    variables = _variables(graph, places)
    uses = _without_core_copies(graph, given)
    inside = tensor_memories(graph, uses)
    pointers: dict[str, Expression] = {
        name: Identifier(variable) for name, variable in variables.items() if name not in inside
    }
    spare = spare_bytes(graph, order)
    lowered = []
    for layer in map(graph.layer, order):
        target, use = targets[layer.name], uses.get(layer.name)
        offset = Identifier(scratch_offset(symbols[layer.name]))
        context = LoweringContext(
            graph=graph,
            layer=layer,
            target=target,
            prefix=f"ferrule_{symbol}_{symbols[layer.name]}",
            pointers=pointers,
            scratch=offset
            if use is not None and use.has_memory
            else AddressOf(Index(_arena_of(use, memories), offset)),
            offsets={
                name: Identifier(offset_name(variables[name]))
                for name in (*layer.present_inputs, *layer.outputs)
                if name in inside
            },
            spare_bytes=0 if use is not None and use.has_memory else spare[layer.name],
            resource_handle=Null() if use is None else handle_of(use),
            offset_prefix=symbols[layer.name],
            arenas=_arenas(use, memories, named or {}),
        )
        op, call = _lower(context, firmware[layer.name], use)
        for scratch in op.scratches:
            context.scratch_of(scratch)
        lowered.append(
            LoweredLayer(
                layer=layer,
                backend=target.device.backend,
                device=target.device.name,
                symbol=symbols[layer.name],
                op=op,
                use=use,
                call=call,
            )
        )
    return LoweredGraph(
        graph=graph,
        symbol=symbol,
        layers=tuple(lowered),
        variables=variables,
        devices=_needed(devices, uses.values()),
        memories=inside,
        named=named or {},
        others=(*memories[1:], *_more_memories(lowered, memories, named or {})),
    )


def _places(graph: Graph, devices: Sequence[DeviceUse], memories: Sequence[Region]) -> Names:
    """Return the names of variables, with those of memories, states and pools taken; layers have names of their own."""
    places = Names()  # an output may have the same name as its layer
    for name in dict.fromkeys(region.name for region in memories):
        if name != ARENA.name:
            places.take(name)
    for name in _RESERVED if graph.states else ():
        places.take(name)
    for pooled in (each for each in devices if each.pool):
        places.take(chosen(pooled).name)
    return places


def _arenas(use: DeviceUse | None, memories: Sequence[Region], named: Mapping[str, Region]) -> dict[str, Expression]:
    """Return the variables of the memories that an operator's scratch may name; "" is that of its other scratch."""
    if use is not None and use.has_memory:
        return {}
    masters = {CORE} if use is None else {CORE, use.device.name}
    reached = {name: region for name, region in named.items() if masters <= region.reachable_by}
    return {"": _arena_of(use, memories), **{name: Identifier(region.name) for name, region in reached.items()}}


def _more_memories(
    lowered: Iterable[LoweredLayer], memories: Sequence[Region], named: Mapping[str, Region]
) -> tuple[Region, ...]:
    """Return the memories that scratch names, besides those that hold tensors."""
    wanted = {scratch.memory for item in lowered for scratch in item.op.scratches}
    known = {region.name for region in memories}
    return tuple(region for name, region in named.items() if name in wanted and region.name not in known)


def _needed(devices: Iterable[DeviceUse], uses: Iterable[DeviceUse]) -> tuple[DeviceUse, ...]:
    """Return the devices that run layers, and the other members of their pools."""
    names = {name for use in uses for name in (use.name, *use.pool)}
    return tuple(use for use in devices if use.name in names)


def _without_core_copies(graph: Graph, uses: Mapping[str, DeviceUse]) -> dict[str, DeviceUse]:
    """Return the uses without the copies between two memories that the core reaches: the core makes them."""
    return {
        name: use for name, use in uses.items() if use.has_memory or graph.layer(name).type is not LayerType.MEM_COPY
    }


def _arena_of(use: DeviceUse | None, memories: Sequence[Region]) -> Identifier:
    """Return the variable of the memory for an operator's scratch: the first one that its device reaches."""
    if use is not None and memories:
        found = home(memories, {CORE, use.device.name})
        return ARENA if found is None else Identifier(found.name)
    return ARENA


def _variables(graph: Graph, names: Names) -> dict[str, str]:
    """Return readable variable names: inputs and outputs keep their names, others are named after their layers.

    The output of a MEM_COPY layer is named after the tensor that it copies.
    """
    variables = {info.name: names.take(info.name) for info in graph.sources}
    for info in graph.results:
        if info.name not in variables and not graph.tensor(info.name).is_constant:
            variables[info.name] = names.take(info.name)
    origins: dict[str, str] = {}
    for layer in graph.layers:
        base = f"{layer.name}_out"
        if layer.type is LayerType.MEM_COPY:
            source = layer.present_inputs[0]
            origins[layer.outputs[0]] = origins.get(source, source)
            base = f"{variables.get(origins[layer.outputs[0]], base)}_copy"
        for name in layer.outputs:
            if name not in variables:
                variables[name] = names.take(base)
    return variables


def _lower(context: LoweringContext, firmware: FirmwareTarget, use: DeviceUse | None) -> tuple[LoweredOp, Call | None]:
    """Return a layer lowered to C, and its own device call or None."""
    layer, backend = context.layer, context.target.device.backend
    if use is not None and use.has_memory and layer.type is LayerType.MEM_COPY:
        call = Call.COPY_TO if layer.outputs[0] in context.offsets else Call.COPY_FROM
        begun = copied(context, use, call, begun=True) if use.driver.copies_beside else None
        return LoweredOp(kernel=str(call), status=copied(context, use, call), start=begun), call
    if use is None and layer.type is LayerType.MEM_COPY:
        source, target = layer.present_inputs[0], layer.outputs[0]
        size = Integer(context.graph.info(source).size_bytes, unsigned=True)
        moved = Evaluate(
            CallExpression(Identifier("memmove"), (context.pointer(target), context.pointer(source), size))
        )
        return LoweredOp(kernel="copy", statements=(moved,)), None
    try:
        op = firmware.lower(context)
    except (UnsupportedError, BrokenBackendError):
        raise
    except FerruleError as error:
        raise UnsupportedError(
            f"backend {backend} refuses layer '{layer.name}' ({layer.type}): {error}", hint=error.hint
        ) from error
    return op, Call.RUN if use is not None and op.view_of is None else None
