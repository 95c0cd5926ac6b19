# SPDX-License-Identifier: Apache-2.0
"""Sessions with a firmware in a QEMU process."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.emulation.crash import CrashReport, EngineError
from ferrule.emulation.engine import Counters, Machine
from ferrule.emulation.process_session import ProcessSession
from ferrule.emulation.qemu.memory import SERVER, QemuMemory
from ferrule.emulation.qemu.monitor import Monitor
from ferrule.emulation.qemu.process import QemuProcess
from ferrule.link import BoardMemory


class QemuSession(ProcessSession):
    """A firmware in QEMU, which runs concurrently."""

    emulator = "QEMU"
    silence_s = (0.01, 0.5)
    """The query of its state also wakes QEMU's main loop, which may otherwise miss that the firmware has enabled its
    receiver."""

    def __init__(self, program: str, machine: Machine) -> None:
        super().__init__(machine)
        self._process = QemuProcess(program, machine.board, machine.elf, self._uarts(machine), machine.options.gdb)
        self._monitor = Monitor(self._process.monitor, self._architecture.qemu, self.clock)
        self._debugged = machine.options.gdb is not None
        self._memory: QemuMemory | None = None
        self._connect(machine, self._process.uarts)
        self._ask("query-status")

    @override
    def clock(self) -> float:
        """Return the processor time of QEMU, and the host's time while it sleeps."""
        return self._process.clock()

    @override
    def counters(self) -> Counters:
        qemu = self._board.qemu
        tick = qemu.instructions_per_tick if qemu else 1
        return Counters(instructions=None, resolution=tick, per_tick=tick)

    @override
    def memory(self) -> BoardMemory | None:
        """Return the board's memory; None with a debugger, since QEMU has one server for gdb."""
        if self._memory is None and not self._debugged:
            self._monitor.start_server(SERVER)
            self._memory = QemuMemory(self._process.server, self._board, self._ask)
        return self._memory

    @override
    def run_on(self) -> None:
        if self._memory is not None:
            self._memory.release()

    @override
    def died(self) -> EngineError:
        self._failure = self._process.died()
        return self._failure

    def _ask(self, command: str) -> object:
        try:
            return self._monitor.command(command)
        except EngineError as error:
            raise self.died() from error

    @override
    def check_health(self) -> bool:
        status = self._ask("query-status")
        super().check_health()
        return not isinstance(status, dict) or bool(status.get("running", True))

    @override
    def _record_words(self, address: int) -> list[int]:
        return self._monitor.words(address, self._architecture.fault_words)

    @override
    def crash_report(self, reason: str) -> CrashReport:
        self.require_running()
        self._ask("stop")  # only a halted core has consistent registers
        registers = self._monitor.registers()
        record = self._recorded_fault()
        self._ask("cont")
        return self._report(reason, registers, record=record)

    @override
    def _end(self) -> None:
        for wire in self._wires:
            wire.stop()
        self._process.stop()
