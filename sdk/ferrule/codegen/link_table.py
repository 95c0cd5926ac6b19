# SPDX-License-Identifier: Apache-2.0
"""Generates the table through which the link serves a model in its default workspace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ferrule._version import VERSION
from ferrule.backends.firmware import numbers
from ferrule.codegen.executor import ExecutorBuilder
from ferrule.codegen.identity import identity_name
from ferrule.codegen.lowered import LoweredGraph
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayType,
    Assign,
    Binary,
    BinaryOperator,
    Block,
    Const,
    Declaration,
    Dereference,
    Expression,
    Function,
    Identifier,
    IncludeKind,
    Integer,
    Linkage,
    Member,
    Module,
    Null,
    Parameter,
    Pointer,
    Return,
    Scalar,
    Statement,
    String,
    StructType,
    Variable,
    call_of,
    designated,
    elements,
    includes,
    return_if,
    unsigned,
)
from ferrule.errors import UnsupportedError
from ferrule.graph import TensorInfo
from ferrule.rendering import one_line

MAX_RANK = 8
"""The value of FERRULE_LINK_MAX_RANK in ferrule/link.h."""
_HASH_DIGITS = 32
_USED = Identifier("used")
_UNUSED = return_if(Binary(BinaryOperator.EQUAL, _USED, Null()), Identifier("FERRULE_ERR_STATE"))
"""Ends a function while there are no devices."""
_STATISTIC = "statistic"


def link_module(builder: ExecutorBuilder) -> Module:
    """Return the module that defines `ferrule_<model>_link_model` and, for a model with devices, `..._link_use`.

    Raises:
        UnsupportedError: an input or output has more than 8 dimensions.
    """
    lowered = builder.lowered
    model = Variable(
        f"{builder.prefix}_link_model",
        Const(StructType("ferrule_link_model")),
        value=_model(builder),
        linkage=Linkage.EXTERNAL,
        doc=f"The model '{one_line(lowered.graph.name)}' in its default workspace, for ferrule_link_serve().",
    )
    own = builder.prefix
    with_devices = bool(lowered.devices)
    uses = (_use_function(builder),) if with_devices else ()
    return Module(
        name=f"{builder.prefix}_link",
        doc="The description of the model that the link sends to a host.",
        interface_includes=(
            *includes("ferrule/link.h"),
            *includes(own if with_devices else "", kind=IncludeKind.MODULE),
        ),
        interface=(model, *uses),
        implementation_includes=(
            *includes(
                identity_name(lowered.symbol),
                own if not with_devices or builder.has_state else "",
                kind=IncludeKind.MODULE,
            ),
            *includes(
                "ferrule/status.h" if with_devices else "",
                "ferrule/device.h" if _has_statistics(lowered) else "",
            ),
            *includes("stddef.h", kind=IncludeKind.STANDARD),
        ),
        implementation=(*_internals(builder), model, *uses),
    )


def _use_function(builder: ExecutorBuilder) -> Function:
    return Function(
        f"{builder.prefix}_link_use",
        Scalar.VOID,
        parameters=(Parameter("devices", _devices_pointer(builder)),),
        body=Block((Assign(_USED, Identifier("devices")),)),
        linkage=Linkage.EXTERNAL,
        doc="Set the devices on which the link runs the model; the pointer is stored, nothing is copied. Until then "
        "every run returns FERRULE_ERR_STATE.",
    )


def _devices_pointer(builder: ExecutorBuilder) -> Pointer:
    return Pointer(Const(StructType(f"{builder.prefix}_devices")))


def _internals(builder: ExecutorBuilder) -> Iterator[Declaration]:
    lowered = builder.lowered
    for kind, members in builder.members.items():
        yield Variable(
            f"{kind}s",
            ArrayType(Const(StructType("ferrule_link_tensor")), len(members)),
            value=elements(_tensor(builder, kind, name, info) for name, info in members),
        )
    yield Variable("counters", ArrayType(Scalar.UINT32, max(1, len(lowered.layers))))
    without: tuple[Statement, ...] = ()
    if lowered.devices:
        yield Variable("calls", ArrayType(StructType("ferrule_link_call"), len(builder.schedule.calls)))
        yield Variable(_USED.name, _devices_pointer(builder))
        without = (_UNUSED,)
    call = builder.default_run(*([_USED] if lowered.devices else ()))
    yield Function(
        "run",
        Scalar.INT32,
        parameters=(Parameter("info", Pointer(StructType("ferrule_run_info"))),),
        body=Block((*without, Return(call))),
    )
    reset = builder.default_reset()
    if reset is not None:
        yield Function("reset", Scalar.INT32, body=Block((Return(reset),)))
    if _has_statistics(lowered):
        yield _statistic_function(lowered)


def _has_statistics(lowered: LoweredGraph) -> bool:
    return any(use.driver.statistics for use in lowered.devices)


def _statistic_function(lowered: LoweredGraph) -> Function:
    """Return the function that asks the handle of a device's number for a count."""
    rest = (Identifier("index"), Identifier("found"))
    choices = (
        return_if(
            Binary(BinaryOperator.EQUAL, Identifier("device"), unsigned(use.index)),
            call_of("ferrule_device_statistic", Member(Dereference(_USED), use.name), *rest),
        )
        for use in lowered.devices
    )
    return Function(
        _STATISTIC,
        Scalar.INT32,
        parameters=(
            Parameter("device", Scalar.UINT32),
            Parameter("index", Scalar.UINT32),
            Parameter("found", Pointer(StructType("ferrule_statistic"))),
        ),
        body=Block((_UNUSED, *choices, Return(Identifier("FERRULE_ERR_ARGUMENT")))),
    )


def _tensor(builder: ExecutorBuilder, kind: str, member: str, info: TensorInfo) -> Aggregate:
    if len(info.shape) > MAX_RANK:
        raise UnsupportedError(f"{kind} '{info.name}' has {len(info.shape)} dimensions, the link carries {MAX_RANK}")
    fields: dict[str, Expression] = {
        "name": String(info.name),
        "data": builder.default_address(kind, member, info),
        "bytes": Integer(info.size_bytes),
    }
    if info.shape:
        fields["shape"] = numbers(np.array(info.shape, np.int32))
    fields["rank"] = Integer(len(info.shape))
    fields["type"] = Identifier(f"FERRULE_LINK_{info.dtype.name}")
    return designated(fields)


def _model(builder: ExecutorBuilder) -> Aggregate:
    lowered = builder.lowered
    graph = lowered.graph
    fields: dict[str, Expression] = {
        "firmware": String("ferrule"),
        "firmware_version": String(VERSION),
        "name": String(graph.name),
        "input_hash": String(lowered.digest[:_HASH_DIGITS]),
        "identity": AddressOf(Identifier(identity_name(lowered.symbol))),
        "inputs": Identifier("inputs"),
        "outputs": Identifier("outputs"),
        "counters": Identifier("counters"),
    }
    if lowered.devices:
        fields |= {"calls": Identifier("calls"), "call_count": Integer(len(builder.schedule.calls))}
    fields |= {
        "run": Identifier("run"),
        "input_count": Integer(len(graph.inputs)),
        "output_count": Integer(len(graph.outputs)),
        "operator_count": Integer(len(lowered.layers)),
        "workspace_bytes": builder.workspace_bytes,
    }
    if builder.has_state:
        fields["reset"] = Identifier("reset")
    if _has_statistics(lowered):
        fields["statistic"] = Identifier(_STATISTIC)
    return designated(fields)
