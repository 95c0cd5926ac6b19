# SPDX-License-Identifier: Apache-2.0
"""The engine renode."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule._typing import override
from ferrule.boards import Board
from ferrule.emulation.crash import EngineError
from ferrule.emulation.engine import Engine, Machine, Session
from ferrule.emulation.ownership import refuse_ownership
from ferrule.emulation.renode.attachment import AttachmentKind
from ferrule.emulation.renode.install import REMEDY, find_renode
from ferrule.emulation.renode.session import RenodeSession
from ferrule.errors import MissingToolError


class RenodeEngine(Engine):
    """Runs the firmware in a process of Renode 1.15 or later; device models run in this process."""

    def __init__(self, kind: AttachmentKind = AttachmentKind.BRIDGE) -> None:
        self._kind = kind

    @property
    @override
    def name(self) -> str:
        return "renode" if self._kind is AttachmentKind.BRIDGE else f"renode:{self._kind}"

    @override
    def missing(self) -> MissingToolError | None:
        if find_renode() is None:
            return MissingToolError("Renode is missing", hint=REMEDY)
        return None

    @override
    def refuses(self, board: Board, devices: Sequence[str] = ()) -> str | None:
        return None

    @override
    def refuses_wires(self, names: Sequence[str]) -> str | None:
        return None

    @override
    def start(self, machine: Machine) -> Session:
        refuse_ownership(self.name, machine.ownership)
        program = find_renode()
        if program is None:
            raise self.missing() or EngineError("Renode is no longer available")
        return RenodeSession(program, machine, self._kind)
