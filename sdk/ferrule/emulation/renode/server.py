# SPDX-License-Identifier: Apache-2.0
"""A Renode process with its robot server, in a folder of its own, which can outlive a session."""

from __future__ import annotations

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
        self._scratch = ScratchFolder()
        self._process: RenodeProcess | None = None
        self._robot: RobotServer | None = None
        self._included = False
        try:
            self._process = RenodeProcess(find_renode() or Path("renode"), self._scratch.path)
            self._robot = RobotServer(self._process.robot_port(), connector=self._process.connect)
            self.release = release(self._robot.execute("version"))
        except BaseException:
            self.stop()
            raise

    @property
    def folder(self) -> Path:
        """The folder in which Renode runs, and in which it finds its files."""
        return self._scratch.path

    @property
    def is_running(self) -> bool:
        """Whether neither `stop` nor an end of the process has ended it."""
        return self._scratch.is_open and self.process.poll() is None

    @property
    def process(self) -> RenodeProcess:
        """The process."""
        assert self._process is not None
        return self._process

    @property
    def robot(self) -> RobotServer:
        """The server that runs keywords."""
        assert self._robot is not None
        return self._robot

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
        if self._robot is not None and self._process is not None and self._scratch.is_open:
            try:
                self._robot.stop()
                self._process.wait(END_S)
            except RenodeError:
                self._robot.close()
        if self._process is not None:
            self._process.stop()
        self._scratch.close()
