# SPDX-License-Identifier: Apache-2.0
"""Device models attached to a running Renode, each served by a thread of this process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from enum import StrEnum

from ferrule._typing import override
from ferrule.boards import Board, read_platform
from ferrule.devices import DeviceFaultError
from ferrule.emulation.crash import EngineError
from ferrule.emulation.engine import AttachedDevice, Machine
from ferrule.emulation.renode.bridge import BridgeServer
from ferrule.emulation.renode.cosimulation import CosimulationPeer, UntimelyInterruptError, WireFormat
from ferrule.emulation.renode.errors import RenodeError
from ferrule.emulation.renode.guard import BoardModel
from ferrule.emulation.renode.process import RenodeProcess
from ferrule.emulation.renode.robot import RobotServer
from ferrule.emulation.renode.script import bridged_entry, cosimulated_entry
from ferrule.emulation.renode.stream import Stream

CONNECT_TIMEOUT_S = 120.0
END_TIMEOUT_S = 10.0


class AttachmentKind(StrEnum):
    """The ways to attach device models to the board's bus."""

    BRIDGE = "bridge"
    """FerruleBridge.cs, a peripheral that Renode compiles; it transfers whole blocks."""
    COSIMULATION = "cosimulation"
    """Renode's co-simulation socket: nothing is compiled, and DMA transfers 8 bytes at a time. Models need no time:
    a write is answered when everything that it starts is complete."""
    COSIMULATION_TICKS = "cosimulation-ticks"
    """The same, with time passing for the models in steps of `TICK_CYCLES` of the board's clock."""


class Attachment(ABC):
    """One device model and its thread."""

    def __init__(self, device: AttachedDevice, board: Board, limit_s: float | None) -> None:
        self._device = device
        self.model = BoardModel(device, board, limit_s=limit_s)
        self._thread: threading.Thread | None = None
        self._error: RenodeError | None = None
        self._ended = False

    @property
    def failure(self) -> EngineError | None:
        """The first failure: a refused access, a fault of the model, or a broken connection."""
        if self.model.failure is not None:
            return self.model.failure
        if self._error is not None and not self._ended:
            return EngineError(f"device {self._device.name}: {self._error}", hint=self._error.hint)
        return None

    @abstractmethod
    def entry(self, board: Board, controller: str) -> str:
        """Return the device's entry for the platform description, before Renode loads it; see `script.Entry`."""

    @abstractmethod
    def connect(self, robot: RobotServer) -> None:
        """Connect the device to Renode, which has loaded the platform."""

    def _serve(self, server: BridgeServer | CosimulationPeer) -> None:
        """Serve the model until Renode closes the connection; it goes on after a failure, so that Renode can report the
        firmware's place.
        """
        goes_on = True
        while goes_on:
            try:
                goes_on = server.serve_one()
            except UntimelyInterruptError as error:
                self._error = self._error or error
            except DeviceFaultError:  # the model keeps it, see `failure`
                pass

    def stop(self) -> None:
        """Wait for the thread to end; to be called when Renode has ended or is about to."""
        self._ended = True
        if self._thread is not None:
            self._thread.join(0 if self.model.stuck else END_TIMEOUT_S)

    def ending(self) -> None:
        """Note that Renode is being ended, so that a broken connection is no longer a failure."""
        self._ended = True

    def _run(self, serve: Callable[[], None]) -> None:
        try:
            serve()
        except RenodeError as error:
            self._error = error
        except OSError as error:
            self._error = RenodeError(f"the connection broke: {error}")

    def _start(self, serve: Callable[[], None]) -> None:
        name = f"renode-{self._device.name}"
        self._thread = threading.Thread(target=self._run, args=(serve,), name=name, daemon=True)
        self._thread.start()


class BridgeAttachment(Attachment):
    """A device model behind FerruleBridge.cs."""

    def __init__(
        self, device: AttachedDevice, board: Board, process: RenodeProcess, limit_s: float | None = None
    ) -> None:
        super().__init__(device, board, limit_s)
        self._listener, self._port = process.listen()
        self._listener.settimeout(CONNECT_TIMEOUT_S)
        self._start(self._accept)

    @override
    def entry(self, board: Board, controller: str) -> str:
        return bridged_entry(self._device, self._port, board, controller)

    @override
    def connect(self, robot: RobotServer) -> None:
        """Do nothing: the bridge connected when the platform was loaded."""

    def _accept(self) -> None:
        with self._listener:
            connected, _ = self._listener.accept()
        with Stream(connected, name="bridge", timeout_s=None) as stream:
            self.model.abandon = stream.shut_down
            self._serve(BridgeServer(self.model, stream))


class CosimulationAttachment(Attachment):
    """A device model behind Renode's co-simulation socket."""

    def __init__(
        self,
        device: AttachedDevice,
        board: Board,
        process: RenodeProcess,
        release: tuple[int, int],
        *,
        ticks: bool = False,
        limit_s: float | None = None,
    ) -> None:
        if ticks and device.interrupt is not None:
            _check_interrupt(device, board, release)
        super().__init__(device, board, limit_s)
        self._process = process
        self._release = release
        self._ticks = ticks

    @override
    def entry(self, board: Board, controller: str) -> str:
        return cosimulated_entry(self._device, self._release, board, controller, ticks=self._ticks)

    @override
    def connect(self, robot: RobotServer) -> None:
        path = f"sysbus.{self._device.name}"
        text = robot.execute(f"{path} ConnectionParameters")
        try:
            main, other = (int(port) for port in text.strip('" ').split()[:2])
        except ValueError:
            raise EngineError(f"Renode names no ports for {path}: {text!r}") from None
        streams = [
            Stream(self._process.connect(port), name=f"co-simulation of {self._device.name}", timeout_s=None)
            for port in (main, other)
        ]
        wire = WireFormat.V1_16 if self._release >= (1, 16) else WireFormat.V1_15
        peer = CosimulationPeer(self.model, *streams, wire=wire)
        self.model.abandon = streams[0].shut_down
        if self._ticks:
            peer.use_ticks()
        self.model.reset()

        def serve() -> None:
            with closing(peer):
                self._serve(peer)

        self._start(serve)
        robot.execute(f"{path} Connect")


def _check_interrupt(device: AttachedDevice, board: Board, release: tuple[int, int]) -> None:
    """Raise EngineError for an interrupt that could rise within a tick and deadlock Renode; see `CosimulationPeer`."""
    hint = "let its driver poll, or put it behind the bridge with the engine renode"
    what = f"device {device.name}: its interrupt cannot rise within a tick of the co-simulation socket"
    if release < (1, 16):
        raise EngineError(f"{what} in Renode before 1.16", hint=hint)
    core = read_platform(board.platform).of_type(board.architecture.platform.core)[0]
    if core.properties.get("enableTrustZone"):  # the socket cannot read whether the secure SysTick is in use
        raise EngineError(f"{what} on board {board.name}, which has TrustZone", hint=hint)


def attach(
    kind: AttachmentKind, machine: Machine, process: RenodeProcess, release: tuple[int, int]
) -> list[Attachment]:
    """Return an attachment for each device of a machine, ready for Renode to load the platform."""
    board, limit_s = machine.board, machine.callback_s
    if kind is AttachmentKind.BRIDGE:
        return [BridgeAttachment(each, board, process, limit_s) for each in machine.devices]
    ticks = kind is AttachmentKind.COSIMULATION_TICKS
    return [
        CosimulationAttachment(each, board, process, release, ticks=ticks, limit_s=limit_s) for each in machine.devices
    ]
