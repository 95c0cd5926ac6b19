# SPDX-License-Identifier: Apache-2.0
"""The response to DEVICE_TRACE, valid and invalid."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.link import LinkCall, LinkError
from ferrule.link.protocol import DeviceTrace, MessageType, request

CALLS = st.builds(
    LinkCall,
    operator=st.integers(0, 2**32 - 1),
    device=st.integers(0, 2**16 - 1),
    call=st.integers(0, 2**16 - 1),
    status=st.integers(-(2**31), 2**31 - 1),
)


@given(st.integers(0, 2**32 - 1), st.lists(CALLS))
def test_calls_come_as_they_were(count: int, calls: list[LinkCall]) -> None:
    payload = pack("<I", count) + b"".join(
        pack("<IHHi", call.operator, call.device, call.call, call.status) for call in calls
    )
    assert DeviceTrace.decode(payload) == DeviceTrace(count=count, calls=tuple(calls))


@given(st.binary(max_size=64))
def test_any_bytes_are_calls_or_an_error(payload: bytes) -> None:
    if len(payload) % 12 == 4:
        assert len(DeviceTrace.decode(payload).calls) == len(payload) // 12
    else:
        with pytest.raises(LinkError, match="DEVICE_TRACE response is malformed"):
            DeviceTrace.decode(payload)


def test_the_request() -> None:
    assert request(MessageType.DEVICE_TRACE, 0x01020304) == b"\4\3\2\1"
