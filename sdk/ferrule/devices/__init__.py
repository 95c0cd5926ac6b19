# SPDX-License-Identifier: Apache-2.0
"""The framework for device models: register tables, buses, interrupt lines, time and faults."""

from ferrule.devices.fault_text import FAULTS, parse_fault
from ferrule.devices.faults import (
    BusErrorAt,
    DmaErrorAt,
    Fault,
    FaultInjector,
    Flip,
    FlippedData,
    FlippedValue,
    NeverDone,
    RegisterAccess,
    SpuriousInterrupt,
    StuckBit,
    Transfer,
    WrongId,
)
from ferrule.devices.faulty_line import FaultyLine, LineFault, LineFaultKind
from ferrule.devices.memory import Escape, GuardedBus, MemoryBus, Range
from ferrule.devices.model import Bus, BusError, Bytes, DeviceFaultError, DeviceModel, InterruptLine
from ferrule.devices.rdl import RdlFile, read_rdl
from ferrule.devices.register_model import RegisterModel
from ferrule.devices.register_text import c_header, documentation
from ferrule.devices.registers import (
    Access,
    ArrayElement,
    EnumeratedValue,
    Field,
    Register,
    RegisterTable,
    Usage,
)
from ferrule.devices.serial import SerialModel
from ferrule.devices.svd import Interrupt, Peripheral, SvdFile, read_svd, svd_text

__all__ = [
    "FAULTS",
    "Access",
    "ArrayElement",
    "Bus",
    "BusError",
    "BusErrorAt",
    "Bytes",
    "DeviceFaultError",
    "DeviceModel",
    "DmaErrorAt",
    "EnumeratedValue",
    "Escape",
    "Fault",
    "FaultInjector",
    "FaultyLine",
    "Field",
    "Flip",
    "FlippedData",
    "FlippedValue",
    "GuardedBus",
    "Interrupt",
    "InterruptLine",
    "LineFault",
    "LineFaultKind",
    "MemoryBus",
    "NeverDone",
    "Peripheral",
    "Range",
    "RdlFile",
    "Register",
    "RegisterAccess",
    "RegisterModel",
    "RegisterTable",
    "SerialModel",
    "SpuriousInterrupt",
    "StuckBit",
    "SvdFile",
    "Transfer",
    "Usage",
    "WrongId",
    "c_header",
    "documentation",
    "parse_fault",
    "read_rdl",
    "read_svd",
    "svd_text",
]
