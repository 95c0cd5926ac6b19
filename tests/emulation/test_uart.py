# SPDX-License-Identifier: Apache-2.0
"""Bytes sent to the firmware and received from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from guest import receive
from manual_clock import ManualClock

from ferrule.emulation import Engine, Machine
from ferrule.emulation.unicorn.session import UnicornSession
from ferrule.errors import FerruleError

pytestmark = [pytest.mark.cc, pytest.mark.emu]


def echoed(data: bytes) -> bytes:
    """Return the firmware's answer to the bytes."""
    return bytes(byte ^ 0x55 for byte in data)


def test_both_engines_echo_the_same(either: Engine, build: Callable[..., Machine]) -> None:
    data = bytes(range(256)) * 8
    with either.start(build("echo")) as session:
        channel = session.channel()
        channel.write(data)
        assert receive(channel, len(data)) == echoed(data)
        assert channel.read(1, 0.05) == b""


def test_bytes_come_one_at_a_time(either: Engine, build: Callable[..., Machine]) -> None:
    data = b"one at a time"
    with either.start(build("echo")) as session:
        for byte in data:
            session.channel().write(bytes([byte]))
            assert session.channel().read(99, 10) == echoed(bytes([byte]))
        session.channel().write(data)
        assert receive(session.channel(), len(data), piece=1) == echoed(data)


def test_two_sessions_at_once(either: Engine, build: Callable[..., Machine]) -> None:
    machine = build("echo")
    with either.start(machine) as first, either.start(machine) as second:
        first.channel().write(b"first")
        second.channel().write(b"second")
        assert receive(second.channel(), 6) == echoed(b"second")
        assert receive(first.channel(), 5) == echoed(b"first")


def test_more_than_the_buffers_hold(either: Engine, build: Callable[..., Machine]) -> None:
    size = 70_000 if either.name == "unicorn" else 20_000
    data = bytes(index * 7 & 0xFF for index in range(size))
    with either.start(build("echo")) as session:
        session.channel().write(data)
        assert receive(session.channel(), size) == echoed(data)


def test_an_image_travels_quickly(
    unicorn: Engine, build: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python is not entered for each byte: the core runs in one slice until all bytes have arrived."""
    data = bytes(27_648)
    monkeypatch.setattr("ferrule.emulation.unicorn.session.time", ManualClock())  # no slice ends by its time limit
    pieces = []
    run = UnicornSession._run_slice
    monkeypatch.setattr(UnicornSession, "_run_slice", lambda session: (pieces.append(session), run(session))[1])
    with unicorn.start(build("echo")) as session:
        session.channel().write(data)
        assert session.channel().read(len(data), 60) == echoed(data)
        assert len(pieces) == 1


def test_an_idle_firmware_costs_no_time(
    unicorn: Engine, build: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferrule.emulation.unicorn.session.time", ManualClock())  # no read ever times out
    with unicorn.start(build("echo")) as session:
        assert session.channel().read(1, 60) == b""


def test_channels_by_name(either: Engine, build: Callable[..., Machine]) -> None:
    with either.start(build("echo")) as session:
        session.channel("uart0").write(b"x")
        assert session.channel("console").read(1, 10) == echoed(b"x")
        with pytest.raises(FerruleError, match="uart9") as caught:
            session.channel("uart9")
        assert "did you mean uart" in (caught.value.hint or "")


def test_a_stopped_session_says_so(either: Engine, build: Callable[..., Machine]) -> None:
    with either.start(build("echo")) as session:
        channel = session.channel()
    session.stop()
    with pytest.raises(FerruleError, match="session is over"):
        channel.read(1, 1)
