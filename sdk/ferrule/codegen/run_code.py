# SPDX-License-Identifier: Apache-2.0
"""Generates the implementation of `ferrule_<model>_run`: the checks of its arguments and the sequence of operators."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from ferrule.backends.firmware import scratch_offset
from ferrule.codegen.cache_code import Upkeep, upkeep
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
from ferrule.codegen.executor_part import member, refuse, refuse_misaligned, refuse_null
from ferrule.codegen.lowered import LoweredLayer, scratches
from ferrule.codegen.place_code import PlaceCode
from ferrule.codegen.schedule import Call as DeviceCallKind
from ferrule.codegen.schedule import DeviceCall, Schedule, ScheduledStep
from ferrule.codegen.storage import StoragePlan
from ferrule.dom import (
    AddressOf,
    Binary,
    BinaryOperator,
    Block,
    Call,
    Comment,
    Const,
    Declare,
    Enumeration,
    Evaluate,
    Expression,
    Function,
    Identifier,
    If,
    Index,
    Integer,
    Null,
    Parameter,
    Pointer,
    Return,
    Scalar,
    Statement,
    StructType,
    Variable,
    call_of,
    unsigned,
)
from ferrule.dom.statements import names_in
from ferrule.memory import scratch_name

_RUN = "run"
INFO = Identifier("info")


class RunCode(PlaceCode):
    """The part of the builder for the functions that run a lowered graph."""

    def __init__(self, storage: StoragePlan, schedule: Schedule) -> None:
        super().__init__(storage)
        self.schedule = schedule
        self._uses = {use.name: use for use in self.lowered.devices}
        self._upkeep = upkeep(storage)

    @property
    def maintains_cache(self) -> bool:
        """Whether the executor cleans or invalidates lines of the core's data cache."""
        return any(step != Upkeep() for step in self._upkeep)

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters of `ferrule_<model>_run`."""
        structs = ("inputs", "outputs", "memory", *(("devices",) if self._uses else ()))
        return (
            *map(self.parameter, structs),
            Parameter(INFO.name, Pointer(StructType("ferrule_run_info"))),
        )

    def run_functions(self) -> Iterator[Function]:
        """Yield `ferrule_<model>_run` and, for a model with devices, `ferrule_<model>_run_until`."""
        arguments = tuple(Identifier(parameter.name) for parameter in self.parameters())
        errors = f"{self.state_rule()}{self._errors()}"
        stricter = any(self.alignment(kind, info) > info.dtype.size_bytes for kind, _, info in self.ends)
        yield self.function(
            "run",
            self.parameters(),
            (Return(call_of(_RUN, *arguments, Null())),) if self._uses else self._whole(),
            "Run one inference in the caller's thread; several may run at once, each in its own memory.\n"
            "`info` may be NULL.\n@retval FERRULE_OK\n"
            "@retval FERRULE_ERR_ARGUMENT a pointer other than `info` is null, a tensor is not aligned for its type"
            f"{' or its device' if stricter else ''},"
            f"{' two members of `devices` are the same,' if len(self._uses) > 1 else ''} "
            "or the workspace is misaligned or too small; "
            f"nothing was run{errors}",
        )
        if self._uses:
            yield self.function(
                "run_until",
                (*self.parameters(), Parameter(DEADLINE.name, Scalar.UINT32)),
                (Return(call_of(_RUN, *arguments, AddressOf(DEADLINE))),),
                f"Like {self.prefix}_run, until `deadline_us`: a time of ferrule_platform_now_us(), at most\n"
                "2^31 - 1 microseconds from now.\n"
                "@retval FERRULE_ERR_TIMEOUT the time has come before an operator or while a device was awaited",
            )

    def input_rows(self) -> Iterator[Function]:
        """Yield `ferrule_<model>_input_rows` for a model whose input is given row by row."""
        if not self.lowered.fed:
            return
        (item,) = (each for each in self.lowered.layers if each.op.feed is not None)
        ((name, info),) = self.members["input"]
        feed, height = item.op.feed, info.shape[1]
        assert feed is not None
        memory, rows, first, count = parameters = (
            self.parameter("memory"),
            Parameter("rows", Pointer(Const(Scalar.INT8))),
            Parameter("first", Scalar.UINT32),
            Parameter("count", Scalar.UINT32),
        )
        given = [Identifier(each.name) for each in (rows, first, count)]
        declared = [*self.declare_arenas(), *map(self.declare, item.layer.outputs)]
        result = Return(Call(feed.function, (*feed.arguments, *given)))
        yield self.function(
            "input_rows",
            parameters,
            (
                refuse_null(Identifier(memory.name), given[0]),
                *self._checked_memory(),
                *_without_unused((*declared, result)),
            ),
            f"Take `count` rows of the input `{name}` as they arrive, from row `first` on, of {height} rows with "
            f"{info.size_bytes // height} B each, and compute what they allow. Row 0 begins an inference in `memory`, "
            f"even if another one has not ended; after row {height - 1}, {self.prefix}_run with a null pointer for "
            f"`{name}` ends it. Until then, `memory` holds what is still needed. In the caller's thread.\n"
            "@retval FERRULE_OK the rows need not be kept\n"
            "@retval FERRULE_ERR_ARGUMENT a pointer is null, the input has fewer rows, or the workspace is misaligned "
            "or too small; nothing was computed\n"
            "@retval FERRULE_ERR_STATE row `first` is not the next one: rows were lost; begin again with row 0",
        )

    def _whole(self) -> Iterator[Statement]:
        yield from self._checks()
        yield Evaluate(call_of("ferrule_run_begin", INFO))
        yield from self.begin_state()
        yield from self._run()

    def _checked_memory(self) -> Iterator[Statement]:
        return itertools.chain.from_iterable(map(self.checked_block, self.storage.blocks))

    def device_numbers(self) -> Iterator[Enumeration | Variable]:
        """Yield the enumeration of the device numbers, if there are devices, and the sets that are opened together."""
        if self._uses:
            yield numbers(self.lowered.devices)
            yield from sets(self.schedule.steps, self._uses)

    def operators(self) -> Iterator[Function]:
        """Yield the functions that run the operators if the model has devices; otherwise `ferrule_<model>_run` does."""
        if self._uses:
            yield Function(
                "run_operators",
                Scalar.INT32,
                parameters=(*map(self.parameter, self._structs_used()), HELD_PARAMETER),
                body=Block(_without_unused(self._body())),
                doc="Return at the first error; the caller then releases the devices that are still held.",
            )
            yield Function(
                _RUN,
                Scalar.INT32,
                parameters=(*self.parameters(), Parameter(DEADLINE.name, Pointer(Const(Scalar.UINT32)))),
                body=Block(tuple(self._whole())),
                doc="Run with a deadline, or without one if `deadline_us` is NULL.",
            )

    # ---- the function

    def _errors(self) -> str:
        if self._uses:
            return (
                "\n@retval FERRULE_ERR_CANCELLED ferrule_run_cancel() was called with `info`"
                "\n@return or the first error of a device, or of `info->stop_at`; all devices are closed and "
                "deactivated, as after a successful run"
            )
        if self.lowered.fed:
            return "\n@retval FERRULE_ERR_STATE the input is a null pointer, and rows of it are missing"
        if any(item.op.status is not None for item in self.lowered.layers):
            return "\n@return or the error of the operator that failed"
        return ""

    def _run(self) -> Iterator[Statement]:
        if not self._uses:
            yield from _without_unused(self._body())
            return
        arguments: tuple[Expression, ...] = (*(Identifier(name) for name in self._structs_used()), AddressOf(HELD))
        yield from held_run(self.lowered.devices, call_of("run_operators", *arguments), tuple(self.end_state()))

    def _structs_used(self) -> Iterator[str]:
        """Yield the names of the structs that the function of the operators reads."""
        named = set(names_in(_without_unused(self._body())))
        yield from (name for name in ("inputs", "outputs", "memory") if name in named)

    def _checks(self) -> Iterator[Statement]:
        yield refuse_null(*(Identifier(each.name) for each in self.parameters() if each.name != INFO.name))
        for kind, name, info in self.ends:
            given = member(f"{kind}s", name)
            if info.name != self.lowered.fed:
                yield refuse_null(given)
            alignment = self.alignment(kind, info)
            if alignment > 1:
                yield refuse_misaligned(given, unsigned(alignment))
        yield from self._checked_memory()
        for name in self._uses:
            yield refuse_null(member("devices", name))
        for one, other in itertools.combinations(self._uses, 2):
            yield refuse(Binary(BinaryOperator.EQUAL, member("devices", one), member("devices", other)))

    def _body(self) -> Iterator[Statement]:
        if self._uses or any(item.op.status is not None for item in self.lowered.layers):
            yield Declare(STATUS.name, Scalar.INT32, OK)
        yield from self.declare_arenas()
        for info in self.graph.sources:
            yield self.declare(info.name)
        yield from self._early_inputs()
        yield from choices(self.lowered.devices)
        declared = {info.name for info in self.graph.sources} | self.lowered.memories.keys()
        for index, item in enumerate(self.lowered.layers):
            yield Comment(_headline(index, item))
            for name in item.layer.outputs:
                if name not in declared:
                    declared.add(name)
                    yield self.declare(name)
            yield from self._notify(index)
            yield from self._step(index, item)
        yield from self._notify(len(self.lowered.layers))
        yield from self._late_outputs()
        yield from self._updated_states()
        if not self._uses:
            yield from self.end_state()
        yield Return(OK)

    def _notify(self, index: int) -> Iterator[Statement]:
        if self._uses:
            yield from checked(call_of("ferrule_held_next", HELD, Integer(index)))
        else:
            yield Evaluate(call_of("ferrule_run_notify", INFO, Integer(index)))

    def _step(self, index: int, item: LoweredLayer) -> Iterator[Statement]:
        """Yield an operator with the device calls around it."""
        step = self.schedule.steps[index] if self._uses else ScheduledStep()
        lines = self._upkeep[index]
        yield from called(step.before, self._uses)
        yield from self._copied_to_scratch(item, item.layer.present_inputs)
        yield from self._maintained("clean", lines.clean, item)
        yield from self._maintained("invalidate", lines.claim, item)
        yield from self._operator(item)
        begun = item.layer.name in self.lowered.ends
        status = item.op.start if begun else item.op.status
        if item.use is not None and item.call is DeviceCallKind.RUN:
            yield from ran(item.use, status)
        elif status is not None:
            failed = STATUS if self._uses else call_of("ferrule_run_fail", INFO, Integer(index), STATUS)
            yield from checked(status, failed)
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
            item = self.lowered.layers[call.operator]
            yield Comment(f"of {call.operator}: {item.layer.name}")
            yield from finished(self._uses[call.device], call.operator, item.op.timeout_us)
            yield from self._maintained("invalidate", self._upkeep[call.operator].invalidate, item)

    def _maintained(self, action: str, buffers: Iterable[str], item: LoweredLayer) -> Iterator[Statement]:
        """Yield the calls that clean or invalidate the cache lines of tensors, or of the operator's scratch."""
        for name in buffers:
            if name in self.lowered.variables:
                place: Expression = self.variable(name)
                size = self.graph.info(name).size_bytes
            else:
                scratch = scratches(item)[name]
                offset = Identifier(scratch_offset(item.symbol, scratch.name))
                place, size = AddressOf(Index(Identifier(self.storage.region(name).name), offset)), scratch.size_bytes
            yield Evaluate(call_of(f"ferrule_cache_{action}", place, unsigned(size)))

    def _copied_to_scratch(self, item: LoweredLayer, tensors: Sequence[str]) -> Iterator[Statement]:
        """Yield the copies of inputs to their places in an operator's scratch, or of outputs from there."""
        scratch = scratch_name(item.layer.name)
        for tie in (each for each in self.storage.copies(item.layer.name) if each.buffer in tensors):
            is_cached = item.use is not None and not item.is_apart and self.storage.region(scratch).line_bytes > 0
            offset = Binary(BinaryOperator.ADD, Identifier(scratch_offset(item.symbol)), Integer(tie.offset))
            inside: Expression = AddressOf(Index(Identifier(self.storage.region(scratch).name), offset))
            own: Expression = self.variable(tie.buffer)
            size = self.size(tie.buffer)
            is_input = tie.buffer not in item.layer.outputs
            if is_cached and not is_input:
                yield Evaluate(call_of("ferrule_cache_invalidate", inside, size))
            target, source = (inside, own) if is_input else (own, inside)
            yield Evaluate(call_of("memmove", target, source, size))
            if is_cached and is_input:
                yield Evaluate(call_of("ferrule_cache_clean", inside, size))

    def _early_inputs(self) -> Iterator[Statement]:
        """Yield the copies of inputs to their places inside scratch, unless the caller put them there."""
        for name, info in self.members["input"]:
            if self.is_placed(info.name):
                yield self._copied_unless_there(member("inputs", name), info.name, inwards=True)

    def _copied_unless_there(self, given: Expression, tensor: str, *, inwards: bool) -> Statement:
        """Return a copy between the caller's memory for a tensor and its place in the workspace."""
        own = self.variable(tensor)
        size = self.size(tensor)
        target, source = (own, given) if inwards else (given, own)
        copy = Evaluate(call_of("memmove", target, source, size))
        return If(Binary(BinaryOperator.NOT_EQUAL, given, own), Block((copy,)))

    def _operator(self, item: LoweredLayer) -> Iterator[Statement]:
        source = item.op.view_of
        if source is None:
            yield from item.op.statements
        elif not self.storage.is_view(item):
            yield self._copy(self.variable(item.layer.outputs[0]), source)
        else:
            yield Comment("the same bytes under another shape")

    def _late_outputs(self) -> Iterator[Statement]:
        """Yield copies to graph outputs that are also inputs, constants or repeated outputs."""
        done: set[str] = {info.name for info in self.graph.sources}
        for name, info in self.members["output"]:
            if info.name in done or self.graph.tensor(info.name).is_constant:
                yield self._copy(member("outputs", name), info.name)
            elif self.is_placed(info.name):
                yield self._copied_unless_there(member("outputs", name), info.name, inwards=False)
            done.add(info.name)

    def _updated_states(self) -> Iterator[Statement]:
        """Yield the copies and exchanges that give the states their new values."""
        steps = self.state_updates()
        if steps:
            yield Comment("the state of the next run")
        for step in steps:
            target = self.variable(step.target)
            if step.exchange:
                size = self.size(step.target)
                places = (target, self.variable(step.source), size)
                yield Evaluate(call_of("ferrule_state_exchange", *places))
            else:
                yield self._copy(target, step.source)

    def _copy(self, target: Expression, source: str) -> Statement:
        tensor = self.graph.tensor(source)
        start: Expression = Identifier(
            self.constant_output(source) if tensor.is_constant else self.lowered.variables[source]
        )
        return Evaluate(call_of("memmove", target, start, unsigned(tensor.info.size_bytes)))


def _headline(index: int, item: LoweredLayer) -> str:
    runner = item.backend if item.device == item.backend else f"{item.backend}, device {item.device}"
    return f"{index}: {item.layer.name}, {item.layer.type} on {runner}"


def _without_unused(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements without declarations of variables that no statement behind them needs."""
    named: set[str] = set()
    kept = []
    for item in reversed(tuple(statements)):
        if not isinstance(item, Declare) or item.name in named:
            named.update(names_in(item))
            kept.append(item)
    return tuple(reversed(kept))
