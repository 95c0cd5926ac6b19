# SPDX-License-Identifier: Apache-2.0
"""SoftNpu in C: each layer becomes a program, which is a function that accesses only the device's memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ferrule.backends.cpu_acc.backend import CpuAccTarget
from ferrule.backends.device import BindingNumber, Device, read_binding
from ferrule.backends.firmware import SCALARS, DeviceDriver, LoweredOp, LoweringContext
from ferrule.backends.manifest import read_manifest
from ferrule.dom import (
    AddressOf,
    ArrayType,
    Block,
    Call,
    Cast,
    Const,
    Expression,
    Function,
    Identifier,
    Index,
    Parameter,
    Pointer,
    Scalar,
    Section,
    Type,
    Variable,
)

FOLDER = Path(__file__).parent
HEADER = "soft_npu/soft_npu.h"
DEFAULT_MEMORY_BYTES = 65536
ALIGNMENT = 16
_MEMORY = Identifier("memory")
_LARGEST = (1 << 31) - 1
_BINDING = {
    "memory_bytes": BindingNumber(low=ALIGNMENT, high=_LARGEST, default=DEFAULT_MEMORY_BYTES),
    "activation_lead": BindingNumber(high=_LARGEST, default=0),
}


class SoftNpuTarget:
    """Lowers layers to CpuAcc's kernels, with tensors in the device's memory."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the call that runs the layer's program on the device."""
        op = CpuAccTarget().lower(_inside(context))
        if op.view_of is not None:
            return op
        program = Function(
            context.symbol("program"),
            Scalar.VOID,
            parameters=(Parameter(_MEMORY.name, Pointer(Scalar.UINT8)),),
            body=Block(op.statements),
        )
        arguments = (context.resource_handle, Identifier(program.name))
        return replace(
            op,
            statements=(),
            declarations=(*op.declarations, program),
            status=Call(Identifier("soft_npu_execute"), arguments),
            headers=(*op.headers, HEADER),
        )

    def driver(self, device: Device) -> DeviceDriver:
        """Return the driver, with a memory of the size in the device's binding.

        Raises:
            FerruleError: the binding has an unknown field, or a value is out of range.
        """
        numbers = read_binding(device, _BINDING).numbers
        memory_bytes = numbers["memory_bytes"]
        memory = Variable(
            f"{device.name}_memory",
            ArrayType(Scalar.UINT8, memory_bytes),
            section=Section.WORKSPACE,
            alignment=ALIGNMENT,
        )
        return DeviceDriver(
            driver="soft_npu_driver",
            header=HEADER,
            context="soft_npu",
            context_fields=(("memory", Identifier(memory.name)), ("bytes", memory_bytes)),
            context_declarations=(memory,),
            contributions=read_manifest(FOLDER).contributions(),
            memory_bytes=memory_bytes,
            alignment=ALIGNMENT,
            activation_lead=numbers["activation_lead"],
        )


def _inside(context: LoweringContext) -> LoweringContext:
    """Return the context with the offsets of tensors replaced by pointers into the device's memory."""
    read = set(context.layer.present_inputs)
    pointers = dict(context.pointers)
    for tensor, offset in context.offsets.items():
        scalar = SCALARS[context.graph.info(tensor).dtype]
        element: Type = Const(scalar) if tensor in read else scalar
        pointers[tensor] = Cast(Pointer(element), _address(offset))
    return replace(context, pointers=pointers, offsets={}, scratch=_address(context.scratch))


def _address(offset: Expression) -> Expression:
    return AddressOf(Index(_MEMORY, offset))
