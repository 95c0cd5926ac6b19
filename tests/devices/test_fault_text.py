# SPDX-License-Identifier: Apache-2.0
"""Faults in the notation that users write."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.devices import (
    FAULTS,
    BusErrorAt,
    DmaErrorAt,
    Fault,
    FlippedData,
    FlippedValue,
    NeverDone,
    SpuriousInterrupt,
    StuckBit,
    WrongId,
    faults,
    parse_fault,
)
from ferrule.errors import FerruleError


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("npu0:never-done@12", NeverDone(since=12)),
        ("npu0:never-done", NeverDone(since=0)),
        ("npu0:bus-error@0", BusErrorAt(at=0)),
        ("npu0:spurious-interrupt@3", SpuriousInterrupt(at=3)),
        ("npu0:flipped-value@7,mask=0x80", FlippedValue(at=7, mask=0x80)),
        ("npu0:flipped-data@2,byte=5", FlippedData(at=2, byte=5)),
        ("npu0:dma-error@4", DmaErrorAt(at=4)),
        ("npu0:wrong-id", WrongId()),
        ("npu0:wrong-id,offset=4,value=1", WrongId(offset=4, value=1)),
        ("npu0:stuck-bit@9,offset=0xC,bit=1,level=1", StuckBit(offset=12, bit=1, level=True, since=9)),
        ("npu0:stuck-bit,offset=0xC,bit=1,level=0", StuckBit(offset=12, bit=1, level=False)),
    ],
)
def test_every_fault(text: str, fault: Fault) -> None:
    assert parse_fault(text) == ("npu0", fault)


def test_every_fault_has_a_name() -> None:
    kinds = {kind for kind in vars(faults).values() if isinstance(kind, type) and issubclass(kind, Fault)}
    assert set(FAULTS.values()) == {kind for kind in kinds if kind is not Fault and fields(kind)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("never-done", "is not DEVICE:FAULT"),
        (":never-done", "is not DEVICE:FAULT"),
        ("npu0:", "is not DEVICE:FAULT"),
        ("npu0:never-dome", "fault 'never-dome'|never-dome"),
        ("npu0:wrong-id@3", "wrong-id is always active and takes no @NUMBER"),
        ("npu0:bus-error", "has no @NUMBER"),
        ("npu0:bus-error@", "has '', expected a number"),
        ("npu0:bus-error@-1", "has '-1', expected a number"),
        ("npu0:bus-error@ten", "has 'ten', expected a number"),
        ("npu0:stuck-bit,bit=1,level=1", "has no offset=NUMBER"),
        ("npu0:flipped-value@1,mark=2", "mark"),
        ("npu0:flipped-value@1,mask", "has 'mask', expected KEY=VALUE"),
    ],
)
def test_what_is_no_fault(text: str, message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        parse_fault(text)


@given(st.text(alphabet="npu0:stuck-bit,never-done@12=0xwrong-id", max_size=40))
def test_any_text_is_a_fault_or_an_error(text: str) -> None:
    with suppress(FerruleError):
        device, fault = parse_fault(text)
        assert device
        assert type(fault) in FAULTS.values()
