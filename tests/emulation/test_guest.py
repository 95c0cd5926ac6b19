# SPDX-License-Identifier: Apache-2.0
"""Accesses to the guest's memories on behalf of the core."""

from __future__ import annotations

import pytest
from needs import require_module

from ferrule.boards import MemoryKind, load_board
from ferrule.devices import BusError
from ferrule.emulation.unicorn.guest import Guest


@pytest.mark.cc
def test_flash_is_read_only_from_its_first_to_its_last_byte(host_cc: tuple[str, ...]) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
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
