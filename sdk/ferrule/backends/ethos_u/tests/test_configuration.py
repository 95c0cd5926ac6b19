# SPDX-License-Identifier: Apache-2.0
"""The table of configurations against the registers in Vela's streams, and the errors for others."""

from __future__ import annotations

import pytest

from ferrule.backends.ethos_u.configuration import CONFIGURATIONS, configuration, configuration_of
from ferrule.errors import FerruleError, UnsupportedError

REGISTERS = {
    "ethos-u55-32": 0x1005,
    "ethos-u55-64": 0x1006,
    "ethos-u55-128": 0x1807,
    "ethos-u55-256": 0x3008,
    "ethos-u65-256": 0x1000_3008,
    "ethos-u65-512": 0x1000_6009,
}
"""CONFIG in the first words of streams of Vela 5.2.0."""


def test_registers_are_those_in_velas_streams() -> None:
    assert {each.name: each.register for each in CONFIGURATIONS} == REGISTERS
    for name, register in REGISTERS.items():
        assert configuration_of(register) is configuration(name)


def test_u85_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="'ethos-u85-256' is not supported: Ethos-U85"):
        configuration("ethos-u85-256")
    with pytest.raises(UnsupportedError, match="CONFIG 0x20003008"):
        configuration_of(0x2000_3008)


def test_an_unknown_name_or_register_lists_the_known_ones() -> None:
    with pytest.raises(FerruleError, match="no configuration of Ethos-U 'ethos-u55-129'") as raised:
        configuration("ethos-u55-129")
    assert "ethos-u55-128" in str(raised.value.hint)
    with pytest.raises(FerruleError, match="CONFIG 0x00001809") as raised:
        configuration_of(0x1809)
    assert "0x00001807 (ethos-u55-128)" in str(raised.value.hint)
