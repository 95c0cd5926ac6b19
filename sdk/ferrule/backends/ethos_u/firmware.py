# SPDX-License-Identifier: Apache-2.0
"""Ethos-U in firmware: each pre-compiled layer becomes its stream and constants, and one call of the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ferrule.backends.contribution import Contribution
from ferrule.backends.device import BindingNumber, Device, read_binding
from ferrule.backends.ethos_u import arm_driver
from ferrule.backends.ethos_u.arm_driver import find_arm_driver
from ferrule.backends.ethos_u.compiled import FAST_SCRATCH_REGION, SCRATCH_REGION, CompiledStream, StreamTensor
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.machine import Range
from ferrule.backends.ethos_u.model import EthosUModel
from ferrule.backends.ethos_u.npu import prepared
from ferrule.backends.ethos_u.program import EthosUProgram, program_of
from ferrule.backends.ethos_u.settings import configuration_of_device, fast_memory
from ferrule.backends.ethos_u.stream import operations, parse_payload
from ferrule.backends.ethos_u.timing import KNOWN
from ferrule.backends.firmware import (
    Blob,
    DeviceDriver,
    FieldValue,
    LoweredOp,
    LoweringContext,
    PlacedTensor,
    Scratch,
    parameter_table,
)
from ferrule.backends.manifest import read_manifest
from ferrule.backends.shared.on_bus import BUS_BINDING, OnBus, base_and_interrupt
from ferrule.dom import (
    AddressOf,
    Call,
    Cast,
    Expression,
    Identifier,
    Index,
    Null,
    Pointer,
    Scalar,
    unsigned,
)
from ferrule.errors import FerruleError, UnsupportedError, place, unknown_name
from ferrule.graph import TensorInfo

FOLDER = Path(__file__).parent
HEADER = "ethos_u/ethos_u.h"
OWN_HEADER = "ethos_u/own.h"
OWN_SOURCE = "ethos_u"
"""The file with Ferrule's own driver, without suffix."""
ALIGNMENT = 16
"""Alignment of streams, constants and scratch in bytes, which the NPU's address registers need."""
TIMEOUT_FLOOR_US = 20_000
"""Limit of the wait for the shortest stream, in microseconds."""
_BINDING = {
    **BUS_BINDING,
    "nonsecure": BindingNumber(high=1, default=0),
    "unprivileged": BindingNumber(high=1, default=0),
}
_OWN = "ferrule"
_DRIVERS = {
    _OWN: (OWN_HEADER, "ethos_u", "ethos_u_interrupt"),
    "arm": (arm_driver.HEADER, arm_driver.CONTEXT, arm_driver.HANDLER),
}
"""The header, the tag of the context and the interrupt handler of each driver in C. Each has the symbol
`ethos_u_driver`, so that the calls of the layers do not depend on it."""
_TEXTS = {"configuration": "a text such as 'ethos-u55-128'", "driver": "'ferrule' or 'arm'"}


class EthosUTarget(OnBus):
    """Lowers pre-compiled layers to streams for the NPU."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the call that runs the layer's stream on the NPU."""
        program = _program(context)
        stream = program.stream
        cycles = max(program.report.cycles, 1)
        timeout_us = _timeout_us(cycles)
        KNOWN.remember(
            parse_payload(stream.payload).words.tobytes(),
            {operation.offset: operation.cycles for operation in program.report.operations},
        )
        blobs = {"payload": _blob(context, "payload", stream.payload)}
        if stream.read_only:
            blobs["read_only"] = _blob(context, "read_only", stream.read_only)
        table, pointer = parameter_table(
            context,
            "ethos_u_stream",
            payload=blobs["payload"],
            payload_bytes=unsigned(len(stream.payload)),
            read_only=blobs.get("read_only"),
            read_only_bytes=unsigned(len(stream.read_only)),
            scratch_bytes=unsigned(stream.scratch_bytes),
            fast_scratch_bytes=unsigned(stream.fast_scratch_bytes),
            timeout_us=unsigned(timeout_us),
        )
        scratch_bytes, apart, fast = _scratch(context, stream)
        arguments = (context.resource_handle, pointer, context.scratch if scratch_bytes else Null(), fast)
        return LoweredOp(
            kernel=f"ethos_u_{stream.configuration.macs}",
            declarations=(table,),
            blobs=tuple(blobs.values()),
            scratch_bytes=scratch_bytes,
            scratch_alignment=ALIGNMENT,
            scratches=apart,
            placed=_placed(context, program),
            status=Call(Identifier("ethos_u_execute"), arguments),
            start=Call(Identifier("ethos_u_start"), arguments),
            cycles=cycles,
            timeout_us=timeout_us,
            headers=(HEADER,),
        )

    def driver(self, device: Device) -> DeviceDriver:
        """Return the driver for a device.

        The fields of its binding: `configuration`, that of the NPU; `base`, the address of the registers, and
        `interrupt`, the interrupt's number, both by default those of a free place of the board; `use_interrupt`, 1 to
        wait for the interrupt instead of polling; `nonsecure` and `unprivileged`, 1 for the level with which the NPU
        accesses memory; `activation_lead`, see `DeviceDriver`; `driver`, "ferrule" or "arm".

        Raises:
            FerruleError: the binding has an unknown field, a value is out of range, or Arm's driver is not there.
        """
        binding = read_binding(device, _BINDING, _TEXTS)
        numbers = binding.numbers
        found = configuration_of_device(device)
        base, interrupt = base_and_interrupt(device, numbers)
        chosen = binding.texts.get("driver", _OWN)
        with place(f"device '{device.name}'"):
            if chosen not in _DRIVERS:
                raise unknown_name("driver", chosen, _DRIVERS)
            contributions = _contributions(chosen, found)
        header, context, handler = _DRIVERS[chosen]
        fields: list[tuple[str, FieldValue]] = []
        if base is not None:
            fields.append(("base", unsigned(base)))
        if chosen == _OWN:  # the context of Arm's has no member for the CONFIG that the NPU must have
            fields.append(("config", unsigned(found.register)))
        fields += [(name, True) for name in ("use_interrupt", "nonsecure", "unprivileged") if numbers[name]]
        return DeviceDriver(
            driver="ethos_u_driver",
            header=header,
            context=context,
            context_fields=tuple(fields),
            contributions=contributions,
            depth=1,
            activation_lead=numbers["activation_lead"],
            base=base,
            base_member="base",
            interrupt=interrupt,
            handler=handler,
            model=partial(EthosUModel, found),
            estimated=True,
        )


def _contributions(driver: str, present: Configuration) -> tuple[Contribution, ...]:
    """Return Ferrule's driver or Arm's; the macro lets a firmware with both fail with a sentence."""
    own = tuple(replace(part, defines={"ETHOS_U_DRIVER": driver}) for part in read_manifest(FOLDER).contributions())
    if driver == _OWN:
        return own
    return (*(part.without(OWN_SOURCE) for part in own), *find_arm_driver().contributions(present.product))


def _program(context: LoweringContext) -> EthosUProgram:
    """Return the layer's program; UnsupportedError if it is none, or is for another NPU than the device's."""
    layer = context.layer
    program = program_of(layer)
    if program is None:
        raise UnsupportedError(f"layer '{layer.name}' ({layer.type}) was not compiled for Ethos-U")
    compiled, present = program.stream.configuration, configuration_of_device(context.target.device)
    if compiled != present:
        raise UnsupportedError(
            f"layer '{layer.name}' was compiled for {compiled.name}, but device '{context.target.device.name}' is "
            f"{present.name}"
        )
    return program


def _blob(context: LoweringContext, suffix: str, data: bytes) -> Blob:
    return context.blob(suffix, np.frombuffer(data, np.uint8), ALIGNMENT)


def _placed(context: LoweringContext, program: EthosUProgram) -> tuple[PlacedTensor, ...]:
    """Return the places of the layer's tensors in the scratch; those of the stream are in the same order.

    Raises:
        UnsupportedError: the stream has other tensors than the layer.
    """
    stream, layer = program.stream, context.layer
    written = list(_written(stream))
    found: list[PlacedTensor] = []
    for kind, names, tensors in (
        ("input", layer.present_inputs, stream.inputs),
        ("output", layer.outputs, stream.outputs),
    ):
        ours = [context.graph.info(name) for name in names]
        if [info.size_bytes for info in ours] != [tensor.size_bytes for tensor in tensors]:
            raise UnsupportedError(
                f"layer '{layer.name}': its stream's {kind}s are {_listed(tensors)}, expected {_listed(ours)}"
            )
        for name, tensor in zip(names, tensors, strict=True):
            span = Range(tensor.region, tensor.offset, tensor.size_bytes)
            preserved = kind == "input" and not any(span.meets(other) for other in written)
            first = _fast_offset(stream) if tensor.region == FAST_SCRATCH_REGION else 0
            if first and fast_memory(context.target.options):
                raise UnsupportedError(
                    f"layer '{layer.name}': Vela placed {kind} '{name}' in the staged part, so option 'fast_memory' "
                    "of backend EthosU must be empty"
                )
            found.append(PlacedTensor(tensor=name, offset=first + tensor.offset, preserved=preserved))
    return tuple(found)


def _written(stream: CompiledStream) -> Iterator[Range]:
    """Yield what the stream's operations write: the whole scratch if one of them is more than the model executes."""
    for operation in operations(parse_payload(stream.payload).words):
        try:
            kernel = prepared(operation, stream.configuration)
        except FerruleError:
            yield from (Range(region, 0, 1 << 40) for region in (SCRATCH_REGION, FAST_SCRATCH_REGION))
            return
        if kernel is None:
            continue
        for each in kernel.work.writes:
            shared = each.region == FAST_SCRATCH_REGION and not stream.fast_scratch_bytes
            yield replace(each, region=SCRATCH_REGION) if shared else each


def _listed(tensors: Sequence[TensorInfo | StreamTensor]) -> str:
    return ", ".join(f"{each.name} {each.dtype}{list(each.shape)}" for each in tensors) or "none"


def _scratch(context: LoweringContext, stream: CompiledStream) -> tuple[int, tuple[Scratch, ...], Expression]:
    """Return the scratch's size, a memory of its own for the fast one, if it has any, and the place of the fast one.

    Without a memory of its own, the fast scratch lies behind the other one.
    """
    if not stream.fast_scratch_bytes:
        return stream.scratch_bytes, (), Null()
    memory = fast_memory(context.target.options)
    if memory:
        apart = Scratch(name="fast", size_bytes=stream.fast_scratch_bytes, memory=memory, alignment=ALIGNMENT)
        return stream.scratch_bytes, (apart,), context.scratch_of(apart)
    offset = _fast_offset(stream)
    behind = AddressOf(Index(Cast(Pointer(Scalar.UINT8), context.scratch), unsigned(offset)))
    return offset + stream.fast_scratch_bytes, (), behind


def _fast_offset(stream: CompiledStream) -> int:
    """Return the place of the fast scratch in the operator's scratch."""
    return -(-stream.scratch_bytes // ALIGNMENT) * ALIGNMENT if stream.fast_scratch_bytes else 0


def _timeout_us(cycles: int) -> int:
    """Return the limit of the wait for a stream: a floor plus eight microseconds per cycle, enough from 1 MHz on."""
    return min(TIMEOUT_FLOOR_US + 8 * cycles, (1 << 31) - 1)
