# SPDX-License-Identifier: Apache-2.0
"""The counts of devices' drivers, over the link."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from host_link import HostChannel, HostFirmware

from ferrule.link import LinkError, LinkSession
from ferrule.link.protocol import MessageType, decode_statistics

COUNTS = 40
"""HOST_STATISTICS in host_firmware.c."""
LONGEST = 255


@pytest.fixture(scope="module")
def counting(build_firmware: Callable[..., HostFirmware]) -> HostFirmware:
    return build_firmware("-DFERRULE_LINK_STATISTICS=1")


@pytest.mark.cc
def test_all_counts_arrive_in_as_many_frames_as_they_need(counting: HostFirmware) -> None:
    counting.reset()
    session = LinkSession(HostChannel(counting), timeout_s=0.0)
    found = session.statistics(0)
    assert list(found.values()) == [2**32 - 1 - index for index in range(COUNTS)]
    sizes = [len(name) for name in found]
    assert sizes == [max(min((index * 37) % (LONGEST + 45), LONGEST), 2) for index in range(COUNTS)]
    assert sum(sizes) > 1024 * 2
    first = decode_statistics(session._ask(MessageType.STATISTICS, 0, 0))
    assert 0 < len(first) < COUNTS
    assert session.statistics(1) == session.statistics(65_535) == {}
    assert session.model_info().name == "reverse"


@pytest.mark.cc
def test_a_firmware_without_counts_has_none(session: LinkSession) -> None:
    assert session.statistics(0) == {}


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\1\0\0", "3 bytes are too few"),
        (b"\1\0\0\0", "a text at byte 4 is cut off"),
        (b"\1\0\0\0\2a", "a text at byte 4 is cut off"),
        (b"\1\0\0\0\1a" * 2, "it has two counts 'a'"),
    ],
)
def test_a_malformed_response_is_an_error(payload: bytes, message: str) -> None:
    with pytest.raises(LinkError, match=f"STATISTICS response is malformed: {message}"):
        decode_statistics(payload)


def test_counts_that_repeat_are_an_error(monkeypatch: pytest.MonkeyPatch, channel: HostChannel) -> None:
    """A firmware that answers the same for ever does not keep the host for ever."""
    session = LinkSession(channel, timeout_s=0.0)
    monkeypatch.setattr(session, "_ask", lambda *_: b"\1\0\0\0\1a")
    with pytest.raises(LinkError, match="the firmware states counts of device 3 twice: a"):
        session.statistics(3)
