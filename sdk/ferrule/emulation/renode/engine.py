# SPDX-License-Identifier: Apache-2.0
"""The engine renode."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule._typing import override
from ferrule.emulation.crash import EngineError
from ferrule.emulation.engine import Engine, Machine, Session, version_of
from ferrule.emulation.renode.attachment import AttachmentKind
from ferrule.emulation.renode.install import REMEDY, find_renode
from ferrule.emulation.renode.server import RenodeServer
from ferrule.emulation.renode.session import RenodeSession
from ferrule.errors import MissingToolError


@dataclass(eq=False)
class RenodeEngine(Engine):
    """Runs the firmware in a process of Renode 1.15 or later; device models run in this process."""

    _kind: AttachmentKind = AttachmentKind.BRIDGE

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
    def version(self) -> str:
        return version_of(str(find_renode() or ""))

    @override
    def _start(self, machine: Machine) -> Session:
        return RenodeSession(RenodeServer, machine, self._kind)

    @override
    def kept(self) -> Engine:
        return KeptRenode(self._kind)


@dataclass(eq=False)
class KeptRenode(RenodeEngine):
    """Runs one firmware after the other in the same process of Renode, whose start takes most of a short run.

    A session ends by removing its machine. After a failure of Renode itself, the next session starts another process.
    """

    _server: RenodeServer | None = None
    _session: RenodeSession | None = None

    @override
    def kept(self) -> Engine:
        return self

    @override
    def end(self) -> None:
        if self._session is not None:
            self._session.stop()
        if self._server is not None:
            self._server.stop()
        self._server = self._session = None

    @override
    def _start(self, machine: Machine) -> Session:
        if self._session is not None and not self._session.is_over:
            raise EngineError(f"the kept engine {self.name} runs one firmware at a time", hint="stop the other session")
        self._session = RenodeSession(self._current, machine, self._kind, keep=True)
        return self._session

    def _current(self) -> RenodeServer:
        if self._server is None or not self._server.is_running:
            self._server = RenodeServer()
        return self._server
