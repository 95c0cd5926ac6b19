# SPDX-License-Identifier: Apache-2.0
"""The engine qemu: QEMU's system emulator for Arm."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from ferrule._typing import override
from ferrule.boards import Board
from ferrule.emulation.engine import Engine, Machine, Session, version_of
from ferrule.emulation.qemu.session import QemuSession
from ferrule.errors import MissingToolError

PROGRAM = "qemu-system-arm"


class QemuEngine(Engine):
    """Runs the firmware in a QEMU process; one instruction takes 1 ns of virtual time."""

    name = "qemu"

    @override
    def missing(self) -> MissingToolError | None:
        if shutil.which(PROGRAM) is None:
            return MissingToolError(f"{PROGRAM} is missing", hint="apt-get install qemu-system-arm")
        return None

    @override
    def version(self) -> str:
        return version_of(shutil.which(PROGRAM) or "")

    @override
    def refuses(self, board: Board, devices: Sequence[str] = ()) -> str | None:
        if board.qemu is None:
            return "its board.toml names no QEMU machine"
        if devices:
            names = ", ".join(devices)
            return (
                f"device models on the board's bus ({names}) can't be put into QEMU; "
                "the engines unicorn and renode have them"
            )
        return None

    @override
    def _start(self, machine: Machine) -> Session:
        return QemuSession(shutil.which(PROGRAM) or PROGRAM, machine)
