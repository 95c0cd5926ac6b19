# SPDX-License-Identifier: Apache-2.0
"""The common part of the emulators' sessions: image, recorded fault, crash report and final error."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeVar

from ferrule._typing import override
from ferrule.architectures import FAULT_RECORD, FaultRecord, Registers
from ferrule.emulation.crash import CrashReport, EngineError, called_from
from ferrule.emulation.engine import Machine, Session
from ferrule.errors import unknown_name
from ferrule.firmware import read_image

_T = TypeVar("_T")


class EmulatorSession(Session):
    """A firmware running in an emulator."""

    def __init__(self, machine: Machine) -> None:
        self._board = machine.board
        self._architecture = machine.board.architecture
        self._image = read_image(machine.elf)
        self._failure: EngineError | None = None
        """The error that ended the session; None while it runs."""
        self.is_over = False
        """Whether the session has been stopped."""

    def require_running(self) -> None:
        """Raise the EngineError that ended the session, if any."""
        if self._failure is not None:
            raise self._failure

    @override
    def stop(self) -> None:
        self.is_over = True
        if self._failure is None:
            self._failure = EngineError("the session is over")
        self._end()

    @abstractmethod
    def _end(self) -> None:
        """Release the session's resources; it may be called more than once."""

    @abstractmethod
    def _record_words(self, address: int) -> Sequence[int]:
        """Return the words of the fault record at an address; fewer or none if its memory cannot be read."""

    def _find_uart(self, name: str, uarts: Mapping[str, _T], where: str) -> _T:
        """Return a UART by role (`link`, `console`) or by name; `where` describes the choices in the error."""
        roles = {"link": self._board.link_uart.name, "console": self._board.console_uart.name}
        found = uarts.get(roles.get(name, name))
        if found is None:
            raise unknown_name("UART", name, [*roles, *uarts], where=where)
        return found

    def _recorded_fault(self) -> FaultRecord | None:
        if not self._image.has(FAULT_RECORD):
            return None
        return self._architecture.fault_record(self._record_words(self._image.address_of(FAULT_RECORD)))

    def _report(
        self,
        reason: str,
        registers: Registers,
        code: bytes | None = None,
        notes: Sequence[str] = (),
        record: FaultRecord | None = None,
    ) -> CrashReport:
        """Return the report on a firmware stopped with these registers, or those of the fault that it has recorded;
        `code` at pc defaults to the image's bytes.
        """
        if record is not None:
            reason, registers = record.reason, record.registers
        pc = registers.get("pc", 0)
        return CrashReport(
            reason=reason,
            pc=pc,
            symbol=self._image.describe(pc),
            registers=registers,
            instruction=self._architecture.disassemble(self._image.read(pc, 4) if code is None else code, pc),
            notes=(called_from(self._image, registers), *notes),
        )
