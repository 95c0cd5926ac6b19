# SPDX-License-Identifier: Apache-2.0
"""A Renode process with its robot server, in a folder of its own, which can outlive a session."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from ferrule.emulation.renode import bridge
from ferrule.emulation.renode.errors import RenodeError
from ferrule.emulation.renode.install import find_renode, release
from ferrule.emulation.renode.process import RenodeProcess
from ferrule.emulation.renode.robot import RobotServer
from ferrule.scratch import ScratchFolder

END_S = 5.0
"""Time limit for Renode to end on request."""


class RenodeServer:
    """A running Renode, in which one machine after the other is created.

    Raises:
        EngineError: Renode cannot be started.
        RenodeError, OSError: its server cannot be reached.
    """

    def __init__(self) -> None:
        self._included = False
        with ExitStack() as held:
            self._scratch = held.enter_context(ScratchFolder())
            self.process = RenodeProcess(find_renode() or Path("renode"), self._scratch.path)
            """The process."""
            held.callback(self.process.stop)
            self.robot = RobotServer(self.process.robot_port(), connector=self.process.connect)
            """The server that runs keywords."""
            held.callback(self._quit)
            self.release = release(self.robot.execute("version"))
            self._held = held.pop_all()

    @property
    def folder(self) -> Path:
        """The folder in which Renode runs, and in which it finds its files."""
        return self._scratch.path

    @property
    def is_running(self) -> bool:
        """Whether neither `stop` nor an end of the process has ended it."""
        return self._scratch.is_open and self.process.poll() is None

    def execute(self, command: str) -> None:
        """Execute a command of the script that creates a machine.

        The bridge's source is compiled only once: the classes of a Renode process stay when its machines go.
        """
        including = command == f"include @{bridge.SOURCE.name}"
        if including and self._included:
            return
        self.robot.execute(command)
        self._included = self._included or including

    def clear(self) -> bool:
        """Remove the machine, its connections and its virtual time; return whether that succeeded."""
        try:
            self.robot.reset()
        except (RenodeError, OSError):
            return False
        self.process.forget_errors()
        return True

    def stop(self) -> None:
        """End Renode; a second call does nothing."""
        self._held.close()

    def _quit(self) -> None:
        try:
            self.robot.stop()
            self.process.wait(END_S)
        except RenodeError:
            self.robot.close()
