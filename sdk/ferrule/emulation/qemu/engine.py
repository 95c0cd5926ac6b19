# SPDX-License-Identifier: Apache-2.0
"""The engine qemu: QEMU's system emulators."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from ferrule._typing import override
from ferrule.architectures import ARCHITECTURES
from ferrule.architectures.architecture import Qemu
from ferrule.boards import Board
from ferrule.emulation.engine import Engine, Machine, Session, version_of
from ferrule.emulation.qemu.session import QemuSession
from ferrule.errors import MissingToolError

_EMULATORS = tuple(each.qemu for each in ARCHITECTURES)


def _missing(qemu: Qemu) -> MissingToolError:
    return MissingToolError(f"{qemu.program} is missing", hint=f"apt-get install {qemu.package}")


class QemuEngine(Engine):
    """Runs the firmware in a QEMU process; one instruction takes 1 ns of virtual time."""

    name = "qemu"

    @override
    def missing(self) -> MissingToolError | None:
        if any(shutil.which(each.program) for each in _EMULATORS):
            return None
        return _missing(_EMULATORS[0])

    @override
    def version(self) -> str:
        return version_of(next(filter(None, (shutil.which(each.program) for each in _EMULATORS)), ""))

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
        qemu = machine.board.architecture.qemu
        program = shutil.which(qemu.program)
        if program is None:
            raise _missing(qemu)
        return QemuSession(program, machine)
