# SPDX-License-Identifier: Apache-2.0
"""The backend: MAXIMUM of two int8 tensors, on tensors in the core's memory or in bounce buffers of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ferrule._typing import override
from ferrule.backends import Backend, BackendId, LayerSupport, Support
from ferrule.backends.device import BindingNumber, Device, read_binding
from ferrule.backends.firmware import DeviceDriver, FieldValue, LoweredOp, LoweringContext, Socket
from ferrule.backends.manifest import read_manifest
from ferrule.backends.target import Target
from ferrule.devices import Access, BusError, Register, RegisterModel, RegisterTable
from ferrule.dom import ArrayType, Call, Identifier, Integer, Scalar, Section, Variable
from ferrule.graph import DataType, Graph, Layer, LayerType
from ferrule.network import operands_of

WIDE = BackendId("WideNpu")
ALIGNMENT = 32
BOUNCE_BYTES = 16384
"""As in the driver."""
_FOLDER = read_manifest(Path(__file__).parent)
_BINDING = {
    "base": BindingNumber(high=0xFFFF_F000, multiple_of=4),
    "interrupt": BindingNumber(high=479),
    "bounce": BindingNumber(high=1, default=0),
}
_DONE, _ERROR = 1, 2


class WideModel(RegisterModel):
    """Refuses addresses that are not multiples of 32."""

    table = RegisterTable(
        name="wide",
        registers=(
            Register("ID", 0x00, access=Access.READ_ONLY, reset=0x45444957),
            Register("STATUS", 0x04, access=Access.READ_ONLY),
            Register("FIRST", 0x08),
            Register("SECOND", 0x0C),
            Register("OUTPUT", 0x10),
            Register("COUNT", 0x14),
        ),
        size_bytes=0x400,
    )

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.name == "COUNT":
            self.set_value("STATUS", _DONE if self._compared(new) else _ERROR)

    def _compared(self, count: int) -> bool:
        addresses = [self.value(name) for name in ("FIRST", "SECOND", "OUTPUT")]
        if any(address % ALIGNMENT for address in addresses):
            return False
        try:
            first, second = (np.frombuffer(self.bus.read(address, count), np.int8) for address in addresses[:2])
            self.bus.write(addresses[2], np.maximum(first, second).tobytes())
        except BusError:
            return False
        return True


class WideSupport(LayerSupport):
    """Supports MAXIMUM of computed int8 tensors of one shape."""

    @override
    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        if layer.type is not LayerType.MAXIMUM:
            return Support(f"WideNpu has no {layer.type}")
        shape = operands_of(graph, layer).output.shape
        for name in layer.present_inputs:
            tensor = graph.tensor(name)
            if tensor.is_constant or tensor.info.dtype is not DataType.INT8 or tensor.info.shape != shape:
                return Support(f"tensor '{name}' is not a computed int8{list(shape)}")
        return Support()


class WideTarget:
    """Lowers a layer to one call of the driver."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        names = (*context.layer.present_inputs, context.layer.outputs[0])
        inside = bool(context.target.device.binding.get("bounce"))
        places = [context.device_offset(name) if inside else context.pointer(name) for name in names]
        count = Integer(context.operands.output.elements, unsigned=True)
        call = "wide_npu_maximum_inside" if inside else "wide_npu_maximum"
        return LoweredOp(
            kernel="wide_npu_maximum",
            status=Call(Identifier(call), (context.resource_handle, *places, count)),
            headers=("wide_npu.h",),
        )

    def driver(self, device: Device) -> DeviceDriver:
        """Return the driver; with `bounce` in the binding, the device has a memory of its own for all tensors."""
        numbers = read_binding(device, _BINDING).numbers
        base, bounce = numbers.get("base"), bool(numbers["bounce"])
        memory = Variable(
            f"{device.name}_memory",
            ArrayType(Scalar.UINT8, BOUNCE_BYTES),
            section=Section.WORKSPACE,
            alignment=ALIGNMENT,
        )
        fields: list[tuple[str, FieldValue]] = []
        if base is not None:
            fields.append(("base", Integer(base, unsigned=True)))
        if bounce:
            fields.append(("memory", Identifier(memory.name)))
        return DeviceDriver(
            driver="wide_npu_driver",
            header="wide_npu.h",
            context="wide_npu",
            context_fields=tuple(fields),
            context_declarations=(memory,) if bounce else (),
            contributions=_FOLDER.contributions(),
            memory_bytes=BOUNCE_BYTES if bounce else 0,
            alignment=ALIGNMENT,
            tensor_alignment=ALIGNMENT,
            base=base,
            base_member="base",
            model=WideModel,
        )

    def plugged(self, device: Device, socket: Socket) -> Device:
        return replace(device, binding={"base": socket.address, "interrupt": socket.interrupt, **device.binding})


class WideNpu(Backend):
    """A device with DMA in bursts of 32 bytes."""

    id = WIDE

    @override
    def layer_support(self) -> LayerSupport:
        return WideSupport()

    @override
    def firmware_target(self) -> WideTarget:
        return WideTarget()
