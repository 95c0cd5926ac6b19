# SPDX-License-Identifier: Apache-2.0
"""Lowers the layers of a graph to C, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from ferrule._frozen import frozen
from ferrule.backends import BackendId, BrokenBackendError
from ferrule.backends.firmware import (
    KernelCosts,
    LoweredOp,
    LoweringContext,
    PricedTarget,
    Scratch,
    scratch_offset,
)
from ferrule.codegen.device_code import chosen, copied, handle_of
from ferrule.codegen.device_use import DeviceUse, tensor_memories, used_devices
from ferrule.codegen.digest import digest
from ferrule.codegen.names import Names
from ferrule.codegen.plan import CORE, REGION, STATE, Plan
from ferrule.codegen.room import needed_bytes, worth
from ferrule.codegen.schedule import Call
from ferrule.codegen.sharing import with_shared_constants
from ferrule.dom import (
    AddressOf,
    Evaluate,
    Expression,
    Identifier,
    Index,
    Null,
    call_of,
    unsigned,
)
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Graph, Layer, LayerType
from ferrule.memory import Ordering, Region, home, scratch_name

_RESERVED = (STATE, "state_word")
"""Names of tensors that the executor of a model with state needs itself."""
_SPARE_BYTES = 2048
"""Scratch in a device's own memory that counts as none, since it takes nothing of the workspace."""


@frozen
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

    @property
    def is_apart(self) -> bool:
        """Whether its device keeps its tensors and its scratch in its own memory."""
        return self.use is not None and self.use.has_memory

    @property
    def is_shared(self) -> bool:
        """Whether a device runs it on tensors in the core's memory."""
        return self.use is not None and not self.is_apart and self.call is Call.RUN

    @property
    def is_copy(self) -> bool:
        """Whether it copies between the core's memory and that of a device."""
        return self.call in {Call.COPY_TO, Call.COPY_FROM}


@dataclass(frozen=True, kw_only=True)
class LoweredGraph:
    """A graph with all layers lowered, and the names that the executor uses for tensors."""

    plan: Plan
    ordering: Ordering
    """The order of the layers that was chosen for the least memory; `layers` may be in another one."""
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

    @property
    def graph(self) -> Graph:
        """The graph of the plan."""
        return self.plan.graph

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the graph."""
        return digest(self.graph)

    @cached_property
    def others(self) -> tuple[Region, ...]:
        """The memories besides the workspace that the core shares with devices, or that scratch names; they have the
        names of C variables.
        """
        wanted = {scratch.memory for item in self.layers for scratch in item.op.scratches}
        named = (region for name, region in self.plan.names.items() if name in wanted and name != self.plan.workspace)
        return tuple({region.name: region for region in (*self.plan.others, *named)}.values())

    @cached_property
    def fed(self) -> str:
        """The input of the graph whose rows are given one by one; "" if there is none."""
        return next((str(item.layer.inputs[0]) for item in self.layers if item.op.feed is not None), "")

    def in_order(self, names: Iterable[str]) -> tuple[LoweredLayer, ...]:
        """Return the layers in the order of their names."""
        by_name = {item.layer.name: item for item in self.layers}
        return tuple(by_name[name] for name in names)


def scratches(item: LoweredLayer) -> dict[str, Scratch]:
    """Return each scratch of a layer by its name in a plan of the memory; the usual one has no name of its own."""
    usual = Scratch(name="", size_bytes=item.op.scratch_bytes, alignment=item.op.scratch_alignment)
    return {scratch_name(item.layer.name, each.name): each for each in (usual, *item.op.scratches) if each.size_bytes}


def offset_name(variable: str) -> str:
    """Return the name of the enumerator for a tensor's offset in its memory."""
    return f"{variable}_OFFSET".upper()


def lower(plan: Plan, ordering: Ordering) -> LoweredGraph:
    """Lower every layer exactly once, with its firmware face and for its target.

    What is given to the backends depends on the order only in the bytes of scratch that are taken to be free.

    Raises:
        UnsupportedError: a backend refuses a layer; the message names both.
        FerruleError: a layer reads a tensor in a memory that it cannot reach.
    """
    graph, names, symbol = plan.graph, Names(), Names().take(plan.graph.name)
    symbols = {layer.name: names.take(layer.name) for layer in graph.layers}
    given, devices = used_devices(ordering.layers, plan)
    variables = _variables(graph, _places(plan, devices))
    uses = {  # the core itself copies between two memories that it reaches
        name: use for name, use in given.items() if use.has_memory or graph.layer(name).type is not LayerType.MEM_COPY
    }
    inside = tensor_memories(graph, uses)
    pointers: dict[str, Expression] = {
        name: Identifier(variable) for name, variable in variables.items() if name not in inside
    }
    contexts = []
    for layer in map(graph.layer, ordering.layers):
        use = uses.get(layer.name)
        is_apart = use is not None and use.has_memory
        offset = Identifier(scratch_offset(symbols[layer.name]))
        context = LoweringContext(
            graph=graph,
            layer=layer,
            target=plan.targets[layer.name],
            prefix=f"ferrule_{symbol}_{symbols[layer.name]}",
            pointers=pointers,
            scratch=offset if is_apart else AddressOf(Index(_arena_of(use, plan), offset)),
            offsets={
                name: Identifier(offset_name(variables[name]))
                for name in (*layer.present_inputs, *layer.outputs)
                if name in inside
            },
            resource_handle=Null() if use is None else handle_of(use),
            offset_prefix=symbols[layer.name],
            arenas={} if is_apart else _arenas(use, plan),
        )
        contexts.append(context)
    ops, calls = zip(*_lowered(contexts, plan, ordering, uses), strict=True) if contexts else ((), ())
    lowered = tuple(
        LoweredLayer(
            layer=context.layer,
            backend=context.target.device.backend,
            device=context.target.device.name,
            symbol=symbols[context.layer.name],
            op=op,
            use=uses.get(context.layer.name),
            call=call,
        )
        for context, op, call in zip(contexts, with_shared_constants(ops), calls, strict=True)
    )
    needed = {name for use in uses.values() for name in (use.name, *use.pool)}
    return LoweredGraph(
        plan=plan,
        ordering=ordering,
        symbol=symbol,
        layers=lowered,
        variables=variables,
        devices=tuple(use for use in devices if use.name in needed),
        memories=inside,
    )


def _lowered(
    contexts: Sequence[LoweringContext], plan: Plan, ordering: Ordering, uses: Mapping[str, DeviceUse]
) -> list[tuple[LoweredOp, Call | None]]:
    """Return each layer lowered to C, and its own device call or None.

    Layers with several ways to run them come last, since the scratch of the others is theirs, too.
    """
    inside = {name for name, use in uses.items() if use.has_memory}
    costs = {each.layer.name: _costs(each, plan) for each in contexts if each.layer.name not in inside}
    found: dict[str, tuple[LoweredOp, Call | None]] = {}
    for several in (False, True):
        needs = needed_bytes(
            plan.graph, ordering.layers, {name: op for name, (op, _) in found.items() if name not in inside}
        )
        room = worth(needs, costs if several else {}, plan.price)
        for each in contexts:
            name = each.layer.name
            if bool(costs.get(name)) is several:
                spare = _SPARE_BYTES if name in inside else room.peak_bytes - needs[name]
                given = replace(each, spare_bytes=spare, codes=room.codes)
                found[name] = _lower(given, plan, uses.get(name))
    return [found[context.layer.name] for context in contexts]


def _costs(context: LoweringContext, plan: Plan) -> Sequence[KernelCosts]:
    firmware = plan.firmware[context.layer.name]
    if not isinstance(firmware, PricedTarget):
        return ()
    with _refusing(context):
        return firmware.costs(context)


def _places(plan: Plan, devices: Sequence[DeviceUse]) -> Names:
    """Return the names of variables, with those of memories, states and pools taken; layers have names of their own."""
    places = Names()  # an output may have the same name as its layer
    for name in dict.fromkeys(region.name for region in (*plan.others, *plan.named)):
        places.take(name)
    for name in _RESERVED if plan.graph.states else ():
        places.take(name)
    for pooled in (each for each in devices if each.pool):
        places.take(chosen(pooled).name)
    return places


def _arenas(use: DeviceUse | None, plan: Plan) -> dict[str, Expression]:
    """Return the variables of the memories that an operator's scratch may name; "" is that of its other scratch."""
    masters = {CORE} if use is None else {CORE, use.device.name}
    reached = {name: Identifier(each.name) for name, each in plan.names.items() if masters <= each.reachable_by}
    return {"": _arena_of(use, plan), **reached}


def _arena_of(use: DeviceUse | None, plan: Plan) -> Identifier:
    """Return the variable of the memory for an operator's scratch: the first one that its device reaches."""
    found = None if use is None else home(plan.memories, {CORE, use.device.name})
    return Identifier(REGION if found is None else found.name)


def _variables(graph: Graph, names: Names) -> dict[str, str]:
    """Return readable variable names: inputs and outputs keep their names, others are named after their layers.

    The output of a MEM_COPY layer is named after the tensor that it copies.
    """
    ends = dict.fromkeys(info.name for info in (*graph.sources, *graph.results))
    variables = {name: names.take(name) for name in ends if not graph.tensor(name).is_constant}
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


def _lower(context: LoweringContext, plan: Plan, use: DeviceUse | None) -> tuple[LoweredOp, Call | None]:
    layer = context.layer
    if use is not None and use.has_memory and layer.type is LayerType.MEM_COPY:
        call = Call.COPY_TO if layer.outputs[0] in context.offsets else Call.COPY_FROM
        begun = copied(context, use, call, begun=True) if use.driver.copies_beside else None
        return LoweredOp(kernel=str(call), status=copied(context, use, call), start=begun), call
    if use is None and layer.type is LayerType.MEM_COPY:
        source, target = layer.present_inputs[0], layer.outputs[0]
        size = unsigned(context.graph.info(source).size_bytes)
        moved = Evaluate(call_of("memmove", context.pointer(target), context.pointer(source), size))
        return LoweredOp(kernel="copy", statements=(moved,)), None
    with _refusing(context):
        op = plan.firmware[layer.name].lower(context)
    for scratch in op.scratches:
        context.scratch_of(scratch)
    return op, Call.RUN if use is not None and op.view_of is None else None


@contextmanager
def _refusing(context: LoweringContext) -> Iterator[None]:
    """Raise the errors of a layer's backend as UnsupportedError, which names both."""
    layer, backend = context.layer, context.target.device.backend
    try:
        yield
    except (UnsupportedError, BrokenBackendError):
        raise
    except FerruleError as error:
        raise UnsupportedError(
            f"backend {backend} refuses layer '{layer.name}' ({layer.type}): {error}", hint=error.hint
        ) from error
