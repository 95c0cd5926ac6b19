# SPDX-License-Identifier: Apache-2.0
"""The table of registers, and the C header that is generated from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.backends.ethos_u import headers
from ferrule.backends.ethos_u.configuration import CONFIGURATIONS, Configuration
from ferrule.backends.ethos_u.registers import TABLE


def test_places() -> None:
    """As in the interface header of Arm's driver."""
    places = {
        "ID": 0x0, "STATUS": 0x4, "CMD": 0x8, "RESET": 0xC, "QBASE": 0x10, "QREAD": 0x18, "QSIZE": 0x20, "PROT": 0x24,
        "CONFIG": 0x28, "REGIONCFG": 0x3C, "AXI_LIMIT3": 0x4C, "BASEP0": 0x80, "BASEP7_HIGH": 0xBC, "PMCR": 0x180,
        "PMCCNTR": 0x1A0, "PMCCNTR_CFG": 0x1A8, "PMEVCNTR3": 0x30C, "PMEVTYPER0": 0x380,
    }  # fmt: skip
    assert {name: TABLE.register(name).offset for name in places} == places


@pytest.mark.parametrize("found", CONFIGURATIONS, ids=lambda each: each.name)
def test_the_register_of_a_configuration(found: Configuration) -> None:
    register = TABLE.register("CONFIG")
    value = found.register
    assert 1 << register.field("MACS_LOG2").get(value) == found.macs
    assert register.field("PRODUCT").get(value) == found.product


@pytest.mark.parametrize("name", headers.HEADERS)
def test_the_headers_are_those_of_the_tables(name: str) -> None:
    assert (headers.FOLDER / name).read_text(encoding="utf-8") == headers.HEADERS[name]


def test_the_headers_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "FOLDER", tmp_path)
    headers.main()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == headers.HEADERS
