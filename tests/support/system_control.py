# SPDX-License-Identifier: Apache-2.0
"""Registers of a Cortex-M's system control space, accessed as the firmware would, while the guest stands."""

from __future__ import annotations

from ferrule.emulation.unicorn.processor import Processor


def read_register(processor: Processor, offset: int, size_bytes: int = 4) -> int:
    """Return a register's value."""
    processor.guest.state.now = processor.guest.elapsed()
    return int(processor.guest.hooks.ferrule_system_control_read(None, offset, size_bytes, processor.core))


def write_register(processor: Processor, offset: int, size_bytes: int, value: int) -> None:
    """Write a register."""
    processor.guest.state.now = processor.guest.elapsed()
    processor.guest.hooks.ferrule_system_control_write(None, offset, size_bytes, value, processor.core)
