# SPDX-License-Identifier: Apache-2.0
"""Exceptions, interrupts and time: the same firmware gives the same trace as under qemu."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferrule.emulation import Engine, Machine, engine

pytestmark = [pytest.mark.cc, pytest.mark.emu]

BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505")
PROGRAMS = ("nesting", "masks", "calls", "faults", "sleep", "kernel")
WITH_FPU = ("mps2-an386", "mps2-an500", "mps2-an505")
Build = Callable[[str, str], Machine]


def trace(machine: Machine, each: Engine) -> list[str]:
    """Run to the end of the trace and return its lines."""
    text = b""
    with each.start(machine) as session:
        while not text.endswith(b"."):
            chunk = session.channel().read(65536, 30)
            assert chunk, f"{session.crash_report('no end')}\n{text.decode()}"
            text += chunk
    return text.decode().splitlines()


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_trace_equals_qemus(unicorn: Engine, qemu: str, build_exceptions: Build, program: str, board: str) -> None:
    machine = build_exceptions(program, board)
    ours = trace(machine, unicorn)
    assert len(ours) > 20
    assert ours == trace(machine, engine("qemu"))


@pytest.mark.parametrize("board", WITH_FPU)
def test_floats_equal_qemus(unicorn: Engine, qemu: str, build_exceptions: Build, board: str) -> None:
    machine = build_exceptions("floats", board)
    assert trace(machine, unicorn) == trace(machine, engine("qemu"))
