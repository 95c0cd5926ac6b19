# SPDX-License-Identifier: Apache-2.0
"""Architectures: all that a kind of core brings, one folder for each. No other package asks which one it is."""

from ferrule.architectures.architecture import Architecture
from ferrule.architectures.cpu import Core, Cpu
from ferrule.architectures.instructions import PLAIN, Effect, Flow, Instructions
from ferrule.architectures.state import FAULT_RECORD, FaultRecord, RegisterNames, Registers, Semihosting, address_text
from ferrule.architectures.table import ARCHITECTURES, CORTEX_M, architecture_of, core_of

__all__ = [
    "ARCHITECTURES",
    "CORTEX_M",
    "FAULT_RECORD",
    "PLAIN",
    "Architecture",
    "Core",
    "Cpu",
    "Effect",
    "FaultRecord",
    "Flow",
    "Instructions",
    "RegisterNames",
    "Registers",
    "Semihosting",
    "address_text",
    "architecture_of",
    "core_of",
]
