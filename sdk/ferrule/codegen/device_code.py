# SPDX-License-Identifier: Apache-2.0
"""The parts of an executor that only a model with devices has: the devices struct and the device calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ferrule.backends.firmware import LoweringContext
from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.schedule import Call, DeviceCall, ScheduledStep
from ferrule.dom import (
    AddressOf,
    ArrayType,
    Assign,
    Binary,
    BinaryOperator,
    Block,
    Const,
    Declare,
    Dereference,
    Enumeration,
    Enumerator,
    Evaluate,
    Expression,
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
    Struct,
    StructMember,
    StructType,
    Variable,
    call_of,
    designated,
    elements,
    return_if,
    unsigned,
)
from ferrule.dom import Call as CallExpression

HELD = Identifier("held")
STATUS = Identifier("status")
OK = Identifier("FERRULE_OK")
DEADLINE = Identifier("deadline_us")
HANDLE = Pointer(StructType("ferrule_device"))
HELD_PARAMETER = Parameter(HELD.name, Pointer(StructType("ferrule_held")))


def number_of(use: DeviceUse) -> Identifier:
    """Return the enumerator of a device's number in the executor's source."""
    return Identifier(f"device_{use.name}".upper())


def chosen(use: DeviceUse) -> Identifier:
    """Return the variable for the number of the member of a pool that is open."""
    return Identifier(f"{use.pool[0]}_chosen")


def opened_number(use: DeviceUse) -> Identifier:
    """Return the expression for the number of an open device in the function that runs the operators."""
    return chosen(use) if use.pool else number_of(use)


def handle_of(use: DeviceUse) -> Expression:
    """Return the expression for a device's handle in the function that runs the operators."""
    return Index(Member(Dereference(HELD), "handles"), opened_number(use))


def copied(context: LoweringContext, use: DeviceUse, call: Call, *, begun: bool = False) -> Expression:
    """Return the call that copies the input of a MEM_COPY layer to or from its device's memory, or only begins to."""
    source, target = context.layer.present_inputs[0], context.layer.outputs[0]
    size = unsigned(context.graph.info(source).size_bytes)
    ends: tuple[Expression, Expression]
    if call is Call.COPY_TO:
        ends = context.device_offset(target), context.pointer(source)
    else:
        ends = context.pointer(target), context.device_offset(source)
    name = f"ferrule_held_submit_{call}" if begun else f"ferrule_held_{call}"
    return call_of(name, HELD, opened_number(use), *ends, size)


# ---- the interface


def public_numbers(symbol: str, uses: Sequence[DeviceUse]) -> Enumeration:
    """Return the enumeration of the device numbers under their public names."""
    rows = [
        Enumerator(
            f"ferrule_{symbol}_device_{use.name}".upper(),
            use.index,
            doc=f"Device {use.device.name} ({use.backend}{', of its pool' if use.pool else ''}).",
        )
        for use in uses
    ]
    count = Enumerator(f"ferrule_{symbol}_devices".upper(), len(uses), doc="Devices that run operators.")
    return Enumeration((*rows, count), doc="Device numbers, as in ferrule_run_info.on_device.")


def devices_struct(symbol: str, uses: Iterable[DeviceUse]) -> Struct:
    """Return the structure that holds the device handles."""
    return Struct(
        f"ferrule_{symbol}_devices",
        tuple(
            StructMember(use.name, HANDLE, doc=f"Bound to `{use.driver.driver}`, of backend {use.backend}.")
            for use in uses
        ),
        doc="The devices that run operators: initialised, bound, and not open in this thread. The members are "
        "pointers, since a copy of a handle would not lock the device.",
    )


# ---- the implementation


def checked(expression: Expression, failed: Expression = STATUS) -> Iterator[Statement]:
    """Yield statements that return the status of an expression, or `failed`, unless it is FERRULE_OK."""
    yield Assign(STATUS, expression)
    yield return_if(Binary(BinaryOperator.NOT_EQUAL, STATUS, OK), failed)


def if_ok(*statements: Statement) -> If:
    """Return the statement that carries out others if the status is FERRULE_OK."""
    return If(Binary(BinaryOperator.EQUAL, STATUS, OK), Block(statements))


def numbers(uses: Sequence[DeviceUse]) -> Enumeration:
    """Return the enumeration of the device numbers for the executor's source."""
    rows = tuple(Enumerator(number_of(use).name, use.index) for use in uses)
    return Enumeration(rows, doc="The devices by number.")


def called(calls: Iterable[DeviceCall], uses: Mapping[str, DeviceUse]) -> Iterator[Statement]:
    """Yield checked calls that acquire or release devices; devices that are opened together are one set."""
    for kind, group in itertools.groupby(calls, key=lambda call: call.call):
        operated = [(call.operator, uses[call.device]) for call in group]
        if kind is Call.OPEN:
            yield from _opened(operated[0][0], [use for _, use in operated])
            continue
        for _, use in operated:
            number = opened_number(use) if kind is Call.CLOSE else number_of(use)
            yield from checked(call_of(f"ferrule_held_{kind}", HELD, number))


def _opened(operator: int, together: Sequence[DeviceUse]) -> Iterator[Statement]:
    """Yield the checked call that opens devices together."""
    own = [use for use in together if not use.pool]
    pools = [use for use in together if use.pool]
    array: Expression = set_at(operator) if own else Null()
    if pools:
        name = f"pools_before_{operator}"
        rows = (elements((number_of(use), Integer(len(use.pool)), AddressOf(chosen(use)))) for use in pools)
        type_ = ArrayType(Const(StructType("ferrule_held_pool")), len(pools))
        yield Declare(name, type_, elements(rows))
        arguments: tuple[Expression, ...] = (array, Integer(len(own)), Identifier(name), Integer(len(pools)))
        yield from checked(call_of("ferrule_held_open_pools", HELD, *arguments))
    elif len(own) > 1:
        yield from checked(call_of("ferrule_held_open_set", HELD, array, Integer(len(own))))
    else:
        yield from checked(call_of("ferrule_held_open", HELD, number_of(own[0])))


def choices(uses: Iterable[DeviceUse]) -> Iterator[Statement]:
    """Yield the variables for the open members of pools."""
    for use in uses:
        if use.pool and use.pool[0] == use.name:
            yield Declare(chosen(use).name, Scalar.UINT32, number_of(use))


def set_at(operator: int) -> Identifier:
    """Return the array of the devices that are opened together before an operator."""
    return Identifier(f"opened_before_{operator}")


def sets(steps: Iterable[ScheduledStep], uses: Mapping[str, DeviceUse]) -> Iterator[Variable]:
    """Yield the arrays of the devices that are opened together; pools are apart."""
    for index, step in enumerate(steps):
        together = [uses[call.device] for call in step.before if call.call is Call.OPEN]
        own = [number_of(use) for use in together if not use.pool]
        if own and len(together) > 1:
            yield Variable(
                set_at(index).name,
                ArrayType(Const(Scalar.UINT32), len(own)),
                value=elements(own),
            )


def finished(use: DeviceUse, index: int, timeout_us: int | None) -> Iterator[Statement]:
    """Yield the checked call that collects the result of operator `index`, which a device has begun."""
    limit = Identifier("FERRULE_WAIT_DEFAULT") if timeout_us is None else unsigned(timeout_us)
    yield from checked(call_of("ferrule_held_finish", HELD, opened_number(use), Integer(index), limit))


def ran(use: DeviceUse, status: Expression | None) -> Iterator[Statement]:
    """Yield the statements that end an operator run by a device; an operator without a status cannot fail."""
    if status is None:
        yield Evaluate(call_of("ferrule_held_ran", HELD, opened_number(use), OK))
        return
    yield Assign(STATUS, status)
    yield from checked(call_of("ferrule_held_ran", HELD, opened_number(use), STATUS))


def held_run(
    uses: Sequence[DeviceUse], call: CallExpression, succeeded: tuple[Statement, ...] = ()
) -> Iterator[Statement]:
    """Yield statements that run the operators with `call` and then release all held devices, even after an error.

    The statements in `succeeded` come after a run without any error.
    """
    devices = Dereference(Identifier("devices"))
    yield Declare(
        "handles",
        ArrayType(Const(HANDLE)),
        elements(Member(devices, use.name) for use in uses),
    )
    yield Declare("entries", ArrayType(StructType("ferrule_held_entry"), 2 * len(uses)))
    fields: dict[str, Expression] = {
        "handles": Identifier("handles"),
        "entries": Identifier("entries"),
        "capacity": Integer(2 * len(uses)),
        "info": Identifier("info"),
    }
    yield Declare(
        HELD.name,
        StructType("ferrule_held"),
        designated(fields),
    )
    yield Declare(STATUS.name, Scalar.INT32, call_of("ferrule_held_begin", AddressOf(HELD), DEADLINE))
    yield if_ok(Assign(STATUS, call))
    end = call_of("ferrule_held_end", AddressOf(HELD), STATUS)
    if not succeeded:
        yield Return(end)
        return
    yield Assign(STATUS, end)
    yield if_ok(*succeeded)
    yield Return(STATUS)
