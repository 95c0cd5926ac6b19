# SPDX-License-Identifier: Apache-2.0
"""Accesses to the guest's memories on behalf of the core."""

from __future__ import annotations

import pytest

from ferrule.boards import MemoryKind, load_board
from ferrule.devices import BusError
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.layout import Stop
from ferrule.emulation.unicorn.processor import Processor

pytestmark = [pytest.mark.cc, pytest.mark.usefixtures("unicorn", "host_cc")]


def test_flash_is_read_only_from_its_first_to_its_last_byte() -> None:
    board = load_board("mps2-an386")
    guest = Guest(board)
    for memory in board.memories:
        for address in (memory.address, memory.address + memory.size_bytes - 1):
            if memory.kind is MemoryKind.FLASH:
                with pytest.raises(BusError, match="is read-only"):
                    guest.bus_access(address, 1, 0xA5)
                assert guest.bus_access(address, 1) == 0
            else:
                guest.bus_access(address, 1, 0xA5)
                assert guest.bus_access(address, 1) == 0xA5
    with pytest.raises(BusError, match="nothing is at 0x50000000"):
        guest.bus_access(0x5000_0000, 4)


@pytest.mark.parametrize("early", [False, True], ids=["on the first fetch", "from the start"])
def test_a_core_executes_and_changes_code_in_ram(early: bool) -> None:
    board = load_board("mps2-an386")
    flash, ram = 0x0000_0000, next(each for each in board.memories if each.kind is not MemoryKind.FLASH).address
    guest = Guest(board)
    processor = Processor(guest, board, flash)
    if early:
        guest.allow_code()
    code = [
        0x8001,  # strh r1, [r0, #0]      r0: RAM
        0x8042,  # strh r2, [r0, #2]
        0x4798,  # blx r3                 r3: RAM + 1
        0x1C2E,  # adds r6, r5, #0        what the first code returned
        0x8004,  # strh r4, [r0, #0]      other code at the same place
        0x4798,  # blx r3
        0xBE00,  # bkpt
    ]
    guest.write_memory(flash + 0x100, b"".join(each.to_bytes(2, "little") for each in code))
    values = {"r0": ram, "r1": 0x2507, "r2": 0x4770, "r3": ram + 1, "r4": 0x2509, "pc": flash + 0x101}
    for name, value in {**values, "sp": ram + 0x1000}.items():  # movs r5, #7; bx lr; movs r5, #9
        guest.set_register(name, value)
    guest.state.breakpoints = 1
    assert processor.run(100) is Stop.BREAKPOINT
    assert (guest.register("r6"), guest.register("r5")) == (7, 9)
    assert guest.executed() == 10
