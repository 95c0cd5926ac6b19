# SPDX-License-Identifier: Apache-2.0
"""Sessions with a firmware in a Renode process."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from ferrule._typing import override
from ferrule.architectures import address_text
from ferrule.devices.watchdog import POLL_S
from ferrule.emulation.crash import CrashReport, EngineError
from ferrule.emulation.engine import Counters, Machine
from ferrule.emulation.process_session import ProcessSession
from ferrule.emulation.renode.attachment import Attachment, AttachmentKind, attach
from ferrule.emulation.renode.errors import RenodeError
from ferrule.emulation.renode.install import OLDEST
from ferrule.emulation.renode.script import (
    PLATFORM_FILE,
    QUANTUM_S,
    TICK_CYCLES,
    core_name,
    machine_commands,
    write_files,
)
from ferrule.emulation.renode.server import RenodeServer
from ferrule.firmware import read_image
from ferrule.firmware.frames import Code
from ferrule.interface import option

RESOLUTION = 2.0
"""Measured with 1.16.1: the counts of a model are within one instruction of those of the engine unicorn. Before 1.16
the cycle counter does not advance within a quantum of virtual time."""


def _require_correct_instructions(machine: Machine, found: tuple[int, int]) -> None:
    """Raise RenodeError if this release computes instructions of the firmware wrongly."""
    architecture = machine.board.architecture
    for defect in architecture.renode_defects:
        if found > defect.last_release or machine.board.cpu.type not in defect.cores:
            continue
        code = Code(machine.elf, architecture.instructions)
        wrong = [address for address, *words in code.instructions() if defect.is_wrong(*words)]
        if wrong:
            place = f"{address_text(wrong[0])} ({read_image(machine.elf).describe(wrong[0])})"
            raise RenodeError(
                f"the firmware contains {defect.what} ({len(wrong)}, first at {place}); {defect.why}",
                hint=f"run board {machine.board.name} with {option('engine', 'qemu')}, or with a later Renode",
            )


class RenodeSession(ProcessSession):
    """A firmware in Renode, which runs concurrently, in virtual time that is not tied to the host's clock."""

    emulator = "Renode"
    silence_s = (0.05, 1.0)

    def __init__(
        self, start: Callable[[], RenodeServer], machine: Machine, kind: AttachmentKind, *, keep: bool = False
    ) -> None:
        """Create the machine in the Renode that `start` returns; with `keep` it goes on running after the session, for
        the next one, unless something failed.
        """
        super().__init__(machine)
        self._keep = keep
        self._core = core_name(machine.board)
        self._broken = False
        """Whether Renode has failed, in contrast to the firmware."""
        self._has_ticks = kind is AttachmentKind.COSIMULATION_TICKS and bool(machine.devices)
        self._release = OLDEST
        self._attachments: list[Attachment] = []
        self._sockets: dict[str, socket.socket] = {}
        self._server: RenodeServer | None = None
        try:
            self._server = start()
            self._load(self._server, machine, kind)
        except (RenodeError, OSError) as error:
            self._failure = self._raised(error)
            self.stop()
            raise self._failure from error
        except BaseException:
            self._keep = False
            self.stop()
            raise

    @property
    def _live(self) -> RenodeServer:
        self.require_running()
        if self._server is None:
            raise EngineError("the session has not begun")
        return self._server

    def _raised(self, error: Exception) -> EngineError:
        """Return a device's failure, if there is one, otherwise Renode's error as an EngineError."""
        if (failure := self._device_failure()) is not None:
            return failure
        self._broken = True
        if isinstance(error, RenodeError):
            return EngineError(f"Renode: {error}", hint=error.hint)
        return EngineError(f"Renode's servers can't be reached: {error}")

    def _device_failure(self) -> EngineError | None:
        return next(filter(None, (each.failure for each in self._attachments)), None)

    def _load(self, server: RenodeServer, machine: Machine, kind: AttachmentKind) -> None:
        process, robot = server.process, server.robot
        self._release = server.release
        _require_correct_instructions(machine, self._release)
        self._attachments = attach(kind, machine, process, self._release)
        bridged = bool(machine.devices) and kind is AttachmentKind.BRIDGE
        entries = [each.entry for each in self._attachments]
        write_files(server.folder, self._board, entries, machine.elf, bridged=bridged)
        ports = {name: process.free_port() for name in self._uarts(machine)}
        for command in machine_commands(self._board, bridged=bridged, terminals=ports):
            server.execute(command)
            if command.endswith(f"@{PLATFORM_FILE}"):
                for attachment in self._attachments:
                    attachment.connect(robot)
        for name, port in ports.items():
            self._sockets[name] = process.connect(port)
        self._connect(machine, self._sockets)
        robot.start()

    @override
    def counters(self) -> Counters:
        resolution = RESOLUTION if self._release >= (1, 16) else self._board.clock_hz * QUANTUM_S
        return Counters(
            instructions=int(self._execute(f"sysbus.{self._core} ExecutedInstructions"), 0),
            resolution=max(resolution, TICK_CYCLES) if self._has_ticks else resolution,
        )

    @override
    def died(self) -> EngineError:
        """Return the error for a Renode that ended unexpectedly; a device's failure takes precedence."""
        self._broken = True
        if self._failure is None:
            process = self._live.process
            self._failure = self._device_failure() or process.died()
        return self._failure

    @override
    def check_devices(self) -> None:
        for attachment in self._attachments:
            if attachment.failure is not None:
                if attachment.model.stuck:
                    time.sleep(2 * POLL_S)  # it may still be interrupted; until then Renode waits for it
                self._failure = attachment.failure if attachment.model.stuck else self._with_report(attachment.failure)
                raise self._failure
        super().check_devices()

    def _with_report(self, failure: EngineError) -> EngineError:
        report = self.crash_report(str(failure))
        reported = EngineError(str(failure), hint=failure.hint, report=report)
        reported.__cause__ = failure.__cause__
        return reported

    def _execute(self, command: str) -> str:
        robot = self._live.robot
        try:
            return robot.execute(command)
        except RenodeError as error:
            raise self._raised(error) from error

    def _word(self, address: int) -> int:
        return int(self._execute(f"sysbus ReadDoubleWord {address:#x}"), 0)

    @override
    def _record_words(self, address: int) -> list[int]:
        first = self._word(address)
        if not first:  # the record begins with a mark; without it, one read is enough
            return [first]
        return [first, *(self._word(address + 4 * index) for index in range(1, self._architecture.fault_words))]

    @override
    def crash_report(self, reason: str) -> CrashReport:
        process = self._live.process
        self._execute("pause")
        registers = {
            name: int(self._execute(f"sysbus.{self._core} GetRegister {number}"), 0)
            for number, name in enumerate(self._architecture.registers.numbered)
        }
        record = self._recorded_fault()
        executed = self.counters().instructions
        self._execute("start")
        notes = [f"{executed} instructions executed", *process.last_errors()]
        notes += [note for attachment in self._attachments for note in attachment.model.notes]
        if not process.isolated:
            notes.append("Renode's servers listen on all interfaces of this machine")
        return self._report(reason, registers, notes=notes, record=record)

    @override
    def _end(self) -> None:
        server, self._server = self._server, None
        for attachment in self._attachments:
            attachment.ending()
        kept = server is not None and self._keep and self._is_sound() and server.clear()
        for wire in self._wires:
            wire.stop()
        for connected in self._sockets.values():
            connected.close()
        if server is not None and not kept:
            server.stop()
        for attachment in self._attachments:
            attachment.stop()

    def _is_sound(self) -> bool:
        """Return whether Renode itself can go on: no model hangs in a call, and no server of Renode's has failed."""
        return not self._broken and not (self._device_failure() or any(each.model.stuck for each in self._attachments))
