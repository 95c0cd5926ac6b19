# SPDX-License-Identifier: Apache-2.0
"""Generates the implementation of `ferrule_<model>_run`: the places of the tensors and the sequence of operators."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, cached_property

from ferrule.backends.firmware import SCALARS, scratch_offset
from ferrule.codegen.cache_code import Upkeep, upkeep, written_by_devices
from ferrule.codegen.device_code import (
    DEADLINE,
    HELD,
    HELD_PARAMETER,
    OK,
    STATUS,
    called,
    checked,
    choices,
    finished,
    held_run,
    numbers,
    ran,
    sets,
)
from ferrule.codegen.lowered import LoweredLayer, offset_name, scratches
from ferrule.codegen.schedule import Call as DeviceCallKind
from ferrule.codegen.schedule import DeviceCall, Schedule, ScheduledStep
from ferrule.codegen.state_code import StateCode
from ferrule.codegen.storage import StoragePlan
from ferrule.dom import (
    AddressOf,
    Assign,
    Binary,
    BinaryOperator,
    Block,
    Call,
    Cast,
    Comment,
    Const,
    Declare,
    Dereference,
    Enumeration,
    Enumerator,
    Evaluate,
    Expression,
    Function,
    Identifier,
    If,
    Index,
    Integer,
    Member,
    Null,
    Parameter,
    Pointer,
    Return,
    Scalar,
    Statement,
    StructType,
    Type,
    Unary,
    UnaryOperator,
    Variable,
    call_of,
    return_if,
    unsigned,
)
from ferrule.graph import TensorInfo
from ferrule.memory import Region, scratch_name

_RUN = "run"
INFO = Identifier("info")
Members = Sequence[tuple[str, TensorInfo]]


class RunCode:
    """Generates the functions that run a lowered graph."""

    def __init__(
        self, storage: StoragePlan, schedule: Schedule, state: StateCode, members: Mapping[str, Members]
    ) -> None:
        self._lowered = storage.lowered
        self._graph = storage.lowered.graph
        self._storage = storage
        self._schedule = schedule
        self._state = state
        self._inputs, self._outputs = members["input"], members["output"]
        self._prefix = f"ferrule_{storage.lowered.symbol}"
        self._uses = {use.name: use for use in storage.lowered.devices}
        self._upkeep = upkeep(storage)
        self._from_devices = written_by_devices(storage)

    @property
    def maintains_cache(self) -> bool:
        """Whether the executor cleans or invalidates lines of the core's data cache."""
        return any(step != Upkeep() for step in self._upkeep)

    def lines(self, tensor: str) -> int:
        """Return the bytes per line of the data cache in front of a tensor; 0 without one, and for a constant."""
        return 0 if tensor not in self._storage.plan.placements else self._storage.region(tensor).line_bytes

    def has_own_lines(self, tensor: str) -> bool:
        """Whether a tensor's cache lines may hold nothing else: a device writes it in memory that the core caches."""
        if self._storage.is_tied(tensor):
            return False  # the core copies it to the caller's memory
        return self.lines(tensor) > 0 and self._storage.root(tensor) in self._from_devices

    def alignment(self, info: TensorInfo, *, output: bool) -> int:
        """Return the alignment, in bytes, that the caller's memory for an input or output needs."""
        if self._storage.is_tied(info.name):
            return info.dtype.size_bytes
        line = self.lines(info.name) if output and self.has_own_lines(info.name) else 1
        return max(info.dtype.size_bytes, self._storage.device_alignment(info.name), line)

    def constant_output(self, tensor: str) -> str:
        """Return the name of the array for a constant result of the graph."""
        results = dict.fromkeys(info.name for info in self._graph.results)
        names = [name for name in results if self._graph.tensor(name).is_constant]
        return f"{self._prefix}_constant_{names.index(tensor)}"

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters of `ferrule_<model>_run`."""
        structs = ("inputs", "outputs", "memory", *(("devices",) if self._uses else ()))
        return (
            *(Parameter(name, struct_pointer(f"{self._prefix}_{name}")) for name in structs),
            Parameter(INFO.name, Pointer(StructType("ferrule_run_info"))),
        )

    def body(self, *, until: bool = False) -> Block:
        """Return the body of `ferrule_<model>_run`, or of `ferrule_<model>_run_until`."""
        if self._uses:
            arguments = tuple(Identifier(parameter.name) for parameter in self.parameters())
            deadline = AddressOf(DEADLINE) if until else Null()
            return Block((Return(call_of(_RUN, *arguments, deadline)),))
        return self._whole()

    def _whole(self) -> Block:
        begun = Evaluate(call_of("ferrule_run_begin", INFO))
        return Block((*self._checks(), begun, *self._state.begin(), *self._run()))

    def offsets(self) -> Iterator[Enumeration]:
        """Yield the offsets of tensors and scratch in the workspace and in the memories of devices."""
        core = [name for name in self._core_tensors() if not self._storage.is_state(name)]
        yield Enumeration(
            enumerators=tuple(self._offset_rows(core, (item for item in self._lowered.layers if not _private(item))))
            or (Enumerator("NOTHING_IN_THE_WORKSPACE", 0),),
            doc="Offsets of tensors and scratch in the workspace, in bytes.",
        )
        yield from self._state.offsets(name for name in self._core_tensors() if self._storage.is_state(name))
        for use in self._lowered.devices:
            tensors = [name for name, home in self._lowered.memories.items() if home is use]
            layers = (item for item in self._lowered.layers if item.use is use and _private(item))
            rows = tuple(self._offset_rows(tensors, layers))
            if rows:
                yield Enumeration(
                    enumerators=rows,
                    doc=f"Offsets of tensors and scratch in the memory of device {use.device.name}, in bytes.",
                )

    def reset_checks(self) -> Iterator[Statement]:
        """Yield the checks of the arguments of `ferrule_<model>_reset`; nothing for a model without state."""
        if self._storage.state is not None:
            yield _refuse_null([Identifier("memory")])
            yield from self._check_block(self._storage.state)

    def device_numbers(self) -> Iterator[Enumeration | Variable]:
        """Yield the enumeration of the device numbers, if there are devices, and the sets that are opened together."""
        if self._uses:
            yield numbers(self._lowered.devices)
            yield from sets(self._schedule.steps, self._uses)

    def feed_parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters of `ferrule_<model>_input_rows`."""
        return (
            self._parameter("memory"),
            Parameter("rows", Pointer(Const(Scalar.INT8))),
            Parameter("first", Scalar.UINT32),
            Parameter("count", Scalar.UINT32),
        )

    def feed_body(self) -> Block:
        """Return the body of `ferrule_<model>_input_rows`."""
        (item,) = (each for each in self._lowered.layers if each.op.feed is not None)
        feed = item.op.feed
        assert feed is not None
        given = tuple(Identifier(parameter.name) for parameter in self.feed_parameters()[1:])
        declared = [*self._declare_arenas(), *(self._declare(name) for name in item.layer.outputs)]
        result = Return(Call(feed.function, (*feed.arguments, *given)))
        checks = (_refuse_null([Identifier("memory"), given[0]]), *self._check_memory())
        return Block((*checks, *_without_unused((*declared, result))))

    def operators(self) -> Iterator[Function]:
        """Yield the functions that run the operators if the model has devices; otherwise `ferrule_<model>_run` does."""
        if self._uses:
            yield Function(
                name="run_operators",
                returns=Scalar.INT32,
                parameters=(*(self._parameter(name) for name in self._structs_used()), HELD_PARAMETER),
                body=Block(_without_unused(self._body())),
                doc="Return at the first error; the caller then releases the devices that are still held.",
            )
            yield Function(
                name=_RUN,
                returns=Scalar.INT32,
                parameters=(*self.parameters(), Parameter(DEADLINE.name, Pointer(Const(Scalar.UINT32)))),
                body=self._whole(),
                doc="Run with a deadline, or without one if `deadline_us` is NULL.",
            )

    # ---- the function

    def _run(self) -> Iterator[Statement]:
        if not self._uses:
            yield from _without_unused(self._body())
            return
        arguments: tuple[Expression, ...] = (*(Identifier(name) for name in self._structs_used()), AddressOf(HELD))
        yield from held_run(self._lowered.devices, call_of("run_operators", *arguments), tuple(self._state.end()))

    def _structs_used(self) -> Iterator[str]:
        """Yield the names of the structs that the function of the operators reads."""
        named = _names_in(_without_unused(self._body()))
        yield from (name for name in ("inputs", "outputs", "memory") if name in named)

    def _parameter(self, name: str) -> Parameter:
        return Parameter(name, struct_pointer(f"{self._prefix}_{name}"))

    def _checks(self) -> Iterator[Statement]:
        pointers = [Identifier(parameter.name) for parameter in self.parameters() if parameter.name != INFO.name]
        yield _refuse_null(pointers)
        for struct, members in (("inputs", self._inputs), ("outputs", self._outputs)):
            for name, info in members:
                if info.name != self._lowered.fed:
                    yield _refuse_null([_member(struct, name)])
                alignment = self.alignment(info, output=struct == "outputs")
                if alignment > 1:
                    yield _refuse_misaligned(_member(struct, name), unsigned(alignment))
        yield from self._check_memory()
        for name in self._uses:
            yield _refuse_null([_member("devices", name)])
        for one, other in itertools.combinations(self._uses, 2):
            yield _refuse(Binary(BinaryOperator.EQUAL, _member("devices", one), _member("devices", other)))

    def _check_memory(self) -> Iterator[Statement]:
        for region in self._storage.blocks:
            yield from self._check_block(region)

    def _check_block(self, region: Region) -> Iterator[Statement]:
        constant = f"{self._prefix}_{region.name}".upper()
        yield _refuse_null([_member("memory", region.name)])
        yield _refuse_misaligned(_member("memory", region.name), Identifier(f"{constant}_ALIGNMENT"))
        if self._storage.plan.region(region.name).peak_bytes:
            given = _member("memory", workspace_size(region.name))
            yield _refuse(Binary(BinaryOperator.LESS, given, Identifier(f"{constant}_BYTES")))

    def _body(self) -> Iterator[Statement]:
        if self._uses or any(item.op.status is not None for item in self._lowered.layers):
            yield Declare(STATUS.name, Scalar.INT32, OK)
        yield from self._declare_arenas()
        for info in self._graph.sources:
            yield self._declare(info.name)
        yield from self._early_inputs()
        yield from choices(self._lowered.devices)
        declared = {info.name for info in self._graph.sources} | self._lowered.memories.keys()
        for index, item in enumerate(self._lowered.layers):
            yield Comment(_headline(index, item))
            for name in item.layer.outputs:
                if name not in declared:
                    declared.add(name)
                    yield self._declare(name)
            yield from self._notify(index)
            yield from self._step(index, item)
        yield from self._notify(len(self._lowered.layers))
        yield from self._late_outputs()
        yield from self._updated_states()
        if not self._uses:
            yield from self._state.end()
        yield Return(OK)

    def _declare_arenas(self) -> Iterator[Declare]:
        for region in self._storage.blocks:
            if region.name in self._blocks_in_use():
                yield Declare(region.name, Const(Pointer(Scalar.UINT8)), _member("memory", region.name))

    def _notify(self, index: int) -> Iterator[Statement]:
        if self._uses:
            yield from checked(call_of("ferrule_held_next", HELD, Integer(index)))
        else:
            yield Evaluate(call_of("ferrule_run_notify", INFO, Integer(index)))

    def _step(self, index: int, item: LoweredLayer) -> Iterator[Statement]:
        """Yield an operator with the device calls around it."""
        step = self._schedule.steps[index] if self._uses else ScheduledStep()
        lines = self._upkeep[index]
        yield from called(step.before, self._uses)
        yield from self._copied_to_scratch(item, item.layer.present_inputs)
        yield from self._maintained("clean", lines.clean, item)
        yield from self._maintained("invalidate", lines.claim, item)
        yield from self._operator(item)
        begun = item.layer.name in self._lowered.ends
        status = item.op.start if begun else item.op.status
        if item.use is not None and item.call is DeviceCallKind.RUN:
            yield from ran(item.use, status)
        elif status is not None and self._uses:
            yield from checked(status)
        elif status is not None:
            yield from _checked_on_the_core(index, status)
        if not begun:
            yield from self._maintained("invalidate", lines.invalidate, item)
        yield from self._copied_to_scratch(item, item.layer.outputs)
        yield from self._released(step.after)

    def _released(self, calls: Iterable[DeviceCall]) -> Iterator[Statement]:
        """Yield the calls after an operator: results that are collected, and releases of devices."""
        for call in calls:
            if call.call is not DeviceCallKind.FINISH:
                yield from called((call,), self._uses)
                continue
            item = self._lowered.layers[call.operator]
            yield Comment(f"of {call.operator}: {item.layer.name}")
            yield from finished(self._uses[call.device], call.operator, item.op.timeout_us)
            yield from self._maintained("invalidate", self._upkeep[call.operator].invalidate, item)

    def _maintained(self, action: str, buffers: Iterable[str], item: LoweredLayer) -> Iterator[Statement]:
        """Yield the calls that clean or invalidate the cache lines of tensors, or of the operator's scratch."""
        for name in buffers:
            if name in self._lowered.variables:
                place: Expression = self._variable(name)
                size = self._graph.info(name).size_bytes
            else:
                scratch = scratches(item)[name]
                offset = Identifier(scratch_offset(item.symbol, scratch.name))
                place, size = AddressOf(Index(Identifier(self._storage.region(name).name), offset)), scratch.size_bytes
            yield Evaluate(call_of(f"ferrule_cache_{action}", place, unsigned(size)))

    def _copied_to_scratch(self, item: LoweredLayer, tensors: Sequence[str]) -> Iterator[Statement]:
        """Yield the copies of inputs to their places in an operator's scratch, or of outputs from there."""
        scratch = scratch_name(item.layer.name)
        for tie in (each for each in self._storage.copies(item.layer.name) if each.buffer in tensors):
            is_cached = item.use is not None and item.use.is_master and self._storage.region(scratch).line_bytes > 0
            offset = Binary(BinaryOperator.ADD, Identifier(scratch_offset(item.symbol)), Integer(tie.offset))
            inside: Expression = AddressOf(Index(Identifier(self._storage.region(scratch).name), offset))
            own: Expression = self._variable(tie.buffer)
            size = self._size(tie.buffer)
            is_input = tie.buffer not in item.layer.outputs
            if is_cached and not is_input:
                yield Evaluate(call_of("ferrule_cache_invalidate", inside, size))
            target, source = (inside, own) if is_input else (own, inside)
            yield Evaluate(call_of("memmove", target, source, size))
            if is_cached and is_input:
                yield Evaluate(call_of("ferrule_cache_clean", inside, size))

    def _early_inputs(self) -> Iterator[Statement]:
        """Yield the copies of inputs to their places inside scratch, unless the caller put them there."""
        for name, info in self._inputs:
            if self._is_apart(info.name):
                yield self._copied_unless_there(_member("inputs", name), info.name, inwards=True)

    def _is_apart(self, tensor: str) -> bool:
        """Whether a tensor of the caller has its place in the workspace, wherever the caller has it."""
        return self._storage.is_tied(tensor) and not self._storage.is_state(tensor)

    def _copied_unless_there(self, given: Expression, tensor: str, *, inwards: bool) -> Statement:
        """Return a copy between the caller's memory for a tensor and its place in the workspace."""
        own = self._variable(tensor)
        size = self._size(tensor)
        target, source = (own, given) if inwards else (given, own)
        copy = Evaluate(call_of("memmove", target, source, size))
        return If(Binary(BinaryOperator.NOT_EQUAL, given, own), Block((copy,)))

    def _operator(self, item: LoweredLayer) -> Iterator[Statement]:
        source = item.op.view_of
        if source is None:
            yield from item.op.statements
        elif item.layer.outputs[0] not in self._storage.views:
            yield self._copy(self._variable(item.layer.outputs[0]), source)
        else:
            yield Comment("the same bytes under another shape")

    def _late_outputs(self) -> Iterator[Statement]:
        """Yield copies to graph outputs that are also inputs, constants or repeated outputs."""
        done: set[str] = {info.name for info in self._graph.sources}
        for name, info in self._outputs:
            if info.name in done or self._graph.tensor(info.name).is_constant:
                yield self._copy(_member("outputs", name), info.name)
            elif self._is_apart(info.name):
                yield self._copied_unless_there(_member("outputs", name), info.name, inwards=False)
            done.add(info.name)

    def _updated_states(self) -> Iterator[Statement]:
        """Yield the copies and exchanges that give the states their new values."""
        steps = self._state.updates()
        if steps:
            yield Comment("the state of the next run")
        for step in steps:
            target = self._variable(step.target)
            if step.exchange:
                size = self._size(step.target)
                places = (target, self._variable(step.source), size)
                yield Evaluate(call_of("ferrule_state_exchange", *places))
            else:
                yield self._copy(target, step.source)

    def _copy(self, target: Expression, source: str) -> Statement:
        tensor = self._graph.tensor(source)
        start: Expression = Identifier(
            self.constant_output(source) if tensor.is_constant else self._lowered.variables[source]
        )
        return Evaluate(call_of("memmove", target, start, unsigned(tensor.info.size_bytes)))

    # ---- storage

    def _variable(self, tensor: str) -> Identifier:
        return Identifier(self._lowered.variables[tensor])

    def _size(self, tensor: str) -> Integer:
        return unsigned(self._graph.info(tensor).size_bytes)

    def _declare(self, tensor: str) -> Declare:
        info = self._graph.info(tensor)
        given = self._given.get(self._storage.root(tensor))
        is_input = given is not None and given[0] == "inputs"
        type_: Type = Pointer(Const(SCALARS[info.dtype]) if is_input else SCALARS[info.dtype])
        return Declare(self._lowered.variables[tensor], Const(type_), self._home(tensor, type_))

    def _home(self, tensor: str, type_: Type) -> Expression:
        """Return the expression for the address of a tensor's bytes."""
        given = self._given.get(self._storage.root(tensor))
        if given is not None:
            struct, name, info = given
            own = _member(struct, name)
            return own if info.name == tensor else _converted(own, info, self._graph.info(tensor), type_)
        arena = Identifier(self._storage.region(tensor).name)
        return Cast(type_, AddressOf(Index(arena, Identifier(self._offset_name(tensor)))))

    @cached_property
    def _given(self) -> dict[str, tuple[str, str, TensorInfo]]:
        """By root: the struct, the member and the tensor through which the caller supplies storage, inputs first.

        An output that is a state's old value is copied from there.
        """
        found: dict[str, tuple[str, str, TensorInfo]] = {}
        olds = {state.source for state in self._graph.states}
        for struct, members in (("inputs", self._inputs), ("outputs", self._outputs)):
            for name, info in members:
                if info.name not in olds and not self._storage.is_tied(info.name):
                    found.setdefault(self._storage.root(info.name), (struct, name, info))
        return found

    def _core_tensors(self) -> Iterator[str]:
        """Yield the tensors that are stored in the workspace, or with the state."""
        for tensor in self._lowered.variables:
            if tensor not in self._lowered.memories and self._storage.root(tensor) not in self._given:
                yield tensor

    def _blocks_in_use(self) -> frozenset[str]:
        """Return the names of the caller's blocks of memory that hold a tensor or scratch."""
        scratch = (name for item in self._lowered.layers if not _private(item) for name in scratches(item))
        return frozenset(self._storage.region(name).name for name in (*self._core_tensors(), *scratch))

    def _offset_rows(self, tensors: Iterable[str], layers: Iterable[LoweredLayer]) -> Iterator[Enumerator]:
        for name in tensors:
            yield Enumerator(self._offset_name(name), self._storage.offset(name))
        for item in layers:
            for name, each in scratches(item).items():
                yield Enumerator(scratch_offset(item.symbol, each.name), self._storage.offset(name))

    def _offset_name(self, tensor: str) -> str:
        return offset_name(self._lowered.variables[tensor])


def workspace_size(region: str) -> str:
    """Return the member of the memory struct that states a region's size."""
    return f"{region}_bytes"


def struct_pointer(name: str) -> Type:
    """Return the type of a pointer to a constant structure of that name."""
    return Pointer(Const(StructType(name)))


def _private(item: LoweredLayer) -> bool:
    """Whether a layer's scratch is in a device's own memory."""
    return item.use is not None and item.use.has_memory


def _member(struct: str, name: str) -> Expression:
    return Member(Dereference(Identifier(struct)), name)


def _converted(value: Expression, from_info: TensorInfo, to_info: TensorInfo, type_: Type) -> Expression:
    return value if from_info.dtype == to_info.dtype else Cast(type_, value)


def _refuse_null(pointers: Iterable[Expression]) -> Statement:
    tests: list[Expression] = [Binary(BinaryOperator.EQUAL, pointer, Null()) for pointer in pointers]
    condition = tests[0]
    for test in tests[1:]:
        condition = Binary(BinaryOperator.OR, condition, test)
    return _refuse(condition)


def _refuse_misaligned(pointer: Expression, alignment: Expression) -> Statement:
    return _refuse(Unary(UnaryOperator.NOT, call_of("ferrule_is_aligned", pointer, alignment)))


def _refuse(condition: Expression) -> Statement:
    return return_if(condition, Identifier("FERRULE_ERR_ARGUMENT"))


def _checked_on_the_core(index: int, status: Expression) -> Iterator[Statement]:
    """Yield the call of an operator that may fail, for an executor without devices."""
    yield Assign(STATUS, status)
    failed = call_of("ferrule_run_fail", INFO, Integer(index), STATUS)
    yield return_if(Binary(BinaryOperator.NOT_EQUAL, STATUS, OK), failed)


def _headline(index: int, item: LoweredLayer) -> str:
    runner = item.backend if item.device == item.backend else f"{item.backend}, device {item.device}"
    return f"{index}: {item.layer.name}, {item.layer.type} on {runner}"


def _without_unused(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements without declarations of variables that no statement behind them needs."""
    named: set[str] = set()
    kept = []
    for item in reversed(tuple(statements)):
        if not isinstance(item, Declare) or item.name in named:
            named.update(_names(item))
            kept.append(item)
    return tuple(reversed(kept))


def _names_in(statements: Iterable[Statement]) -> frozenset[str]:
    """Return the identifiers that statements name; a declaration does not name its own variable."""
    return frozenset(_names(tuple(statements)))


def _names(node: object) -> Iterator[str]:
    if isinstance(node, Identifier):
        yield node.name
    elif isinstance(node, tuple):
        for item in node:
            yield from _names(item)
    else:
        kind: type = type(node)
        for name in _parts(kind):
            yield from _names(getattr(node, name))


@cache
def _parts(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
