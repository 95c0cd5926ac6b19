# SPDX-License-Identifier: Apache-2.0
"""Models with a register table: access rules, reset and hooks, checked by Hypothesis against a plain dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from register_tables import ADDER as TABLE

from ferrule._typing import override
from ferrule.devices import Access, BusError, Register, RegisterModel


class Line:
    def __init__(self) -> None:
        self.levels: list[bool] = []

    def set(self, level: bool) -> None:
        self.levels.append(level)


class Adder(RegisterModel):
    table = TABLE

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[tuple[str, int, int]] = []
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        self.writes.append((register.name, old, new))


def test_access_rules() -> None:
    adder = Adder()
    assert adder.size_bytes == 0x100
    assert adder.read(0, 4) == 0x41444452
    with pytest.raises(BusError, match="adder: a write of ID, which is read-only") as caught:
        adder.write(0, 4, 1)
    assert caught.value.address == 0
    with pytest.raises(BusError, match="adder: a read of TRIGGER, which is write-only"):
        adder.read(0xC, 4)
    with pytest.raises(BusError, match="a read of 1 B at offset 0x4, expected 4 B for CONTROL"):
        adder.read(4, 1)
    with pytest.raises(BusError, match="a write of 4 B at offset 0x10, where there is no register"):
        adder.write(0x10, 4, 1)
    assert adder.writes == []


def test_writes_reach_fields_only_and_clear_by_one() -> None:
    adder = Adder()
    adder.write(4, 4, 0xFFFF_FFFF)
    assert adder.read(4, 4) == 0x71
    assert adder.writes == [("CONTROL", 0, 0x71)]
    adder.set_field("STATUS", "DONE", 1)
    adder.write(8, 4, 0x7FFF_FFFF)
    assert adder.field("STATUS", "DONE") == 1
    adder.write(8, 4, 0x8000_0000)
    assert adder.read(8, 4) == 0
    adder.write(0xC, 4, 5)
    assert adder.value("TRIGGER") == 5


def test_reset_and_power() -> None:
    adder, line = Adder(), Line()
    adder.attach(irq=line)
    adder.set_value("CONTROL", 3)
    adder.reset()
    assert adder.read(4, 4) == 0
    assert line.levels == [False]
    adder.set_value("CONTROL", 3)
    adder.set_power(on=False)
    assert adder.value("CONTROL") == 3
    adder.set_power(on=True)
    assert adder.value("CONTROL") == 0


def test_without_a_bus_dma_is_an_error() -> None:
    with pytest.raises(BusError, match="reads 4 B at 0x00000010, but is attached to no bus"):
        Adder().bus.read(0x10, 4)
    with pytest.raises(BusError, match="writes 2 B"):
        Adder().bus.write(0x10, b"ab")
    with pytest.raises(BusError, match="attached to no bus"):
        Adder().bus.view(0x10, 4)
    assert Adder().next_event() is None


@given(
    st.lists(st.tuples(st.sampled_from([0, 4, 8, 12, 16, 3]), st.sampled_from([1, 2, 4]), st.integers(0, 2**32 - 1)))
)
def test_any_sequence_of_writes(writes: list[tuple[int, int, int]]) -> None:
    adder = Adder()
    expected = {register.offset: register.reset for register in TABLE}
    for offset, width, value in writes:
        register = TABLE.at(offset)
        if register is None or width != 4 or register.access is Access.READ_ONLY:
            with pytest.raises(BusError):
                adder.write(offset, width, value)
            continue
        adder.write(offset, width, value)
        if register.access is Access.CLEAR_BY_ONE:
            expected[offset] &= ~value
        else:
            expected[offset] = value & (sum(field.mask for field in register.fields) or register.mask)
    for register in TABLE:
        if register.access is not Access.WRITE_ONLY:
            assert adder.read(register.offset, 4) == expected[register.offset]
