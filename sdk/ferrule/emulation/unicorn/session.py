# SPDX-License-Identifier: Apache-2.0
"""Sessions with a firmware that runs inside this process, and only while one of its channels is being read."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from ferrule._typing import override
from ferrule.architectures import FaultRecord, Registers, address_text
from ferrule.boards import MemoryKind
from ferrule.devices import DeviceFaultError
from ferrule.devices.hosting import HostedSerialModel
from ferrule.devices.register_text import registers_text
from ferrule.devices.watchdog import WATCHDOG
from ferrule.emulation.contract import ContractCounts
from ferrule.emulation.crash import CrashReport, EngineError, ExitError, engine_errors
from ferrule.emulation.emulator_session import EmulatorSession
from ferrule.emulation.engine import Clock, Counters, DeviceWork, Machine, Observation
from ferrule.emulation.gdb import GdbConnection
from ferrule.emulation.ownership import NEXT, OwnershipCounts, OwnershipError
from ferrule.emulation.unicorn import semihosting
from ferrule.emulation.unicorn.contract import DeviceContract, Returns
from ferrule.emulation.unicorn.debugger import Debugger
from ferrule.emulation.unicorn.device import BoardDevice
from ferrule.emulation.unicorn.fault import WRITE_REFUSED, access_text, fault_text
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.layout import CoreFault, Stop
from ferrule.emulation.unicorn.observer import Observer
from ferrule.emulation.unicorn.ownership import Ownership, memory_at
from ferrule.emulation.unicorn.peripherals import attach
from ferrule.emulation.unicorn.processor import Processor
from ferrule.emulation.unicorn.stopwatch import Stopwatch
from ferrule.emulation.unicorn.timing import Timing
from ferrule.emulation.unicorn.uart import KINDS, Uart, UartWire
from ferrule.link import BoardMemory, Channel, LinkError
from ferrule.timing import Duration, core_timing

SLICE_INSTRUCTIONS = 2_000_000
"""Largest number of instructions between two checks of the clock, about 10 ms."""
SLICE_S = 0.05
"""Duration above which the next slice is halved, as when the firmware accesses slow registers."""
LONGEST_SLICE_S = 0.5
"""Duration after which a slice is ended early, as when each access to a device model takes long."""
IDLE_PATIENCE_INSTRUCTIONS = 100_000
"""Instructions of polling an empty UART after which the firmware counts as waiting for input, unless a timer runs."""


@dataclass
class UnicornChannel(Channel):
    """The channel of one emulated UART."""

    _session: UnicornSession
    _uart: Uart

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Run the firmware until it has sent bytes, and return them; empty on a time-out or when it waits for input.

        Raises:
            EngineError: the firmware faulted.
        """
        if not self._uart.ready_bytes:
            self._session.run_until_output(self._uart, max_bytes, timeout_s)
        return self._uart.take(max_bytes)

    @override
    def clock(self) -> float:
        """Return the processor time of this thread, in which the firmware runs."""
        return time.thread_time()

    @override
    def write(self, data: bytes) -> None:
        """Queue bytes for the firmware."""
        self._uart.give(data)

    @override
    def close(self) -> None:
        """Do nothing: the session owns the UART."""


@dataclass
class GuestMemory(BoardMemory):
    """The memory of a guest between two pieces of its run."""

    _guest: Guest

    @override
    def read(self, address: int, size_bytes: int) -> bytes:
        return self._guest.read_memory(address, size_bytes)

    @override
    def write(self, address: int, data: bytes) -> None:
        view = self._guest.memory_view(address, len(data))
        if view.readonly:
            raise LinkError(f"an input cannot be written to {address:#010x}, which the firmware cannot write either")
        view[:] = data


class UnicornSession(EmulatorSession):
    """A firmware in unicorn, which runs during reads."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._clock = machine.clock
        vector_table = self._board.memory(self._board.placement.code).address
        guest = self._guest = Guest(self._board)
        self._processor = Processor(guest, self._board, vector_table)
        self._timing = self._timed(machine.clock)
        self._uarts = attach(guest, self._processor, self._board)
        guest.load(self._image)
        limit_s = machine.callback_s
        self._ownership: Ownership | None = None
        if machine.ownership is not None:
            devices = [(device.name, device.ranges) for device in machine.devices]
            self._ownership = Ownership(guest, self._board, machine.ownership, devices)
        self._contract: DeviceContract | None = None
        returns = Returns(guest)
        if not machine.contract.unchecked:
            self._contract = DeviceContract(guest, machine.contract, self._place_text, returns)
        self._devices = [
            BoardDevice(
                guest,
                self._processor,
                device,
                limit_s,
                self._contract,
                self._ownership,
                self._place_text,
                self._contend,
            )
            for device in machine.devices
        ]
        by_name = {each.model.name: each for each in self._devices}
        self._observer = Observer(guest, self._processor, machine.contract, by_name, returns, machine.clock.value)
        self._stopwatch = Stopwatch(
            guest, self._processor, machine.durations, by_name, returns, self._observer, self._timing
        )
        if self._timing is not None and machine.options.gdb is None:
            self._timing.repeat()
        self._wires = [
            UartWire(
                self._uart(wire.uart, f"for device {wire.name} "),
                HostedSerialModel(wire.model, name=wire.name, limit_s=limit_s),
            )
            for wire in machine.wires
        ]
        self._slice = SLICE_INSTRUCTIONS
        self._slice_ends = math.inf
        if self._devices and self._image.has(NEXT):
            guest.on_call(self._image.address_of(NEXT), self._begin_operator)
        if self._devices:
            WATCHDOG.every_look(self._cut)
        self._reset(vector_table)
        self._debugger: Debugger | None = None
        self._semihosting = machine.options.semihosting and machine.options.gdb is None
        if self._semihosting:
            self._processor.stop_at_breakpoints()
        if machine.options.gdb is not None:
            self._debugger = Debugger(self._processor, GdbConnection(machine.options.gdb))

    def _timed(self, clock: Clock) -> Timing | None:
        """Return the model of the core's cycles, if the machine's time is counted in them."""
        core = core_timing(self._board.cpu.type)
        return None if clock is Clock.INSTRUCTIONS or core is None else Timing(self._guest, self._board, core)

    def _contend(self, address: int, size_bytes: int) -> None:
        """Let the core wait for a device's transfer, if the board states that for the memory."""
        if self._timing is not None:
            waits = self._timing.contention(address, size_bytes)
            if waits:
                self._processor.contend(waits)

    def _place_text(self, address: int) -> str:
        """Return an address with the symbol that it belongs to."""
        symbol = self._image.symbol_at(address)
        if symbol is None:
            return address_text(address)
        offset = address - symbol.address
        return f"{address_text(address)} ({symbol.name}{f'+{offset:#x}' if offset > 0 else ''})"

    def _reset(self, vector_table: int) -> None:
        with engine_errors():
            registers = self._guest.model.reset(self._guest, vector_table)
        for name, value in registers.items():
            self._guest.set_register(name, value)

    @override
    def channel(self, name: str = "link") -> UnicornChannel:
        return UnicornChannel(self, self._uart(name))

    def _uart(self, name: str, purpose: str = "") -> Uart:
        where = f"{purpose}that the unicorn engine models ({', '.join(KINDS)})"
        return self._find_uart(name, self._uarts, where)

    @override
    def counters(self) -> Counters:
        return Counters(instructions=self._guest.executed(), resolution=1, unit=self._clock.value)

    @override
    def elapsed(self) -> int:
        return self._processor.time

    @override
    def memory(self) -> BoardMemory:
        return GuestMemory(self._guest)

    @override
    def ownership(self) -> OwnershipCounts | None:
        return None if self._ownership is None else self._ownership.counts

    @override
    def contract(self) -> ContractCounts | None:
        if self._contract is None:
            return None
        account = self._contract.account
        return ContractCounts(commands=account.commands, transfers=account.transfers)

    @override
    def observations(self) -> Mapping[str, Observation]:
        return self._observer.observations()

    @override
    def device_work(self) -> Mapping[tuple[str, int | None], DeviceWork] | None:
        return {
            (device.model.name, operator): work for device in self._devices for operator, work in device.work().items()
        }

    @override
    def durations(self) -> tuple[Duration, ...]:
        return self._stopwatch.take()

    def _begin_operator(self) -> None:
        operator = self._guest.argument(1)
        for device in self._devices:
            device.begin(operator)

    def run_until_output(self, uart: Uart, wanted_bytes: int, timeout_s: float) -> None:
        """Run until the UART has bytes, the firmware waits for input, or the processor time has elapsed."""
        deadline = time.thread_time() + timeout_s
        idle_from: int | None = None
        uart.state.output_wanted = max(1, wanted_bytes)
        while True:
            try:
                stop = self._run_slice()
            except EngineError:
                if uart.ready_bytes:
                    return  # bytes sent before the failure come first; the next read raises
                raise
            carried = self._carry()
            if uart.ready_bytes:
                return
            entered = self._guest.state.entered
            if stop is Stop.ASLEEP and not carried:
                return
            if stop is Stop.IDLE and not carried and not self._processor.awaits_event:
                idle_from = entered if idle_from is None else idle_from
                if entered - idle_from >= IDLE_PATIENCE_INSTRUCTIONS:
                    return
            else:
                idle_from = None
            if time.thread_time() >= deadline:
                return

    def _carry(self) -> bool:
        """Carry bytes between UARTs and devices; return whether the firmware received any."""
        try:
            return any([wire.carry() for wire in self._wires])  # noqa: C419 all wires, not up to the first answer
        except DeviceFaultError as error:
            self._fail(error, self._guest.registers())

    def _fail(self, error: EngineError | DeviceFaultError, registers: Registers) -> NoReturn:
        found: EngineError | DeviceFaultError = self._constant_written(error) or error
        if isinstance(found, OwnershipError):
            self._failure = found.reported(self._stand(found.reason, registers))
            raise self._failure from None
        self._failure = self._error(str(error), registers, hint=error.hint)
        if isinstance(error, DeviceFaultError):
            error.pc = registers["pc"]
            raise self._failure from error
        raise self._failure from None

    def _constant_written(self, error: EngineError | DeviceFaultError) -> OwnershipError | None:
        """Return the error for a device's write to a constant, if ownership is checked and that caused the fault."""
        device = next((each for each in self._devices if each.model.fault is error), None)
        escape = None if device is None else device.model.escape
        if self._ownership is None or device is None or escape is None or not escape.write:
            return None
        constant = self._constant(escape.address)
        if constant is None:
            return None
        return self._ownership.constant_error(
            constant, escape.address, escape.size_bytes, device=device.model.name, cause=escape.register
        )

    def _constant(self, address: int) -> str | None:
        """Return the name of the constant at an address of a read-only memory; None if there is none."""
        memory = memory_at(self._board, address)
        symbol = self._image.symbol_at(address)
        if memory is None or memory.kind is not MemoryKind.FLASH or symbol is None or symbol.is_function:
            return None
        return symbol.name

    def _cut(self, now: float) -> None:
        if now > self._slice_ends:
            self._processor.cut()

    def _run_slice(self) -> Stop:
        self.require_running()
        start = time.monotonic()
        self._slice_ends = start + LONGEST_SLICE_S
        try:
            stop = (self._debugger or self._processor).run(self._slice)
        except (EngineError, DeviceFaultError) as error:
            self._fail(error, self._guest.failed_registers or self._guest.registers())
        finally:
            self._slice_ends = math.inf
        self._failure = self._failure_at(stop) or self._failure  # a model may have stopped the session
        self.require_running()
        slow = time.monotonic() - start > SLICE_S
        self._slice = max(1, self._slice // 2) if slow else min(2 * self._slice, SLICE_INSTRUCTIONS)
        return stop

    def _failure_at(self, stop: Stop) -> EngineError | None:
        """Return the error if the firmware has recorded a fault or cannot continue without a reset."""
        ended = self._called() if stop is Stop.BREAKPOINT and self._semihosting else None
        record, fault = self._recorded_fault(), self._processor.fault
        # first, since the name of a constant says more than the bus fault that the firmware has recorded for the write
        if self._ownership is not None and fault is not None and fault.access.type == WRITE_REFUSED:
            access = fault.access
            constant = self._constant(access.address)
            if constant is not None:
                found = self._ownership.constant_error(
                    constant, access.address, access.bytes, pc=access.program_counter
                )
                return found.reported(self._stand(found.reason, fault=fault))
        if record is not None:
            return self._recorded_error(record, fault)
        if stop is Stop.OWNERSHIP and self._ownership is not None:
            found = self._ownership.error()
            return found.reported(self._stand(found.reason, {**self._guest.registers(), "pc": found.pc}))
        if stop is Stop.LOCKUP:
            call = f"supervisor call ({self._guest.model.call})"
            cause = fault_text(fault, self._board, self._devices) if fault else call
            return self._error(f"lockup, since no fault handler may run here: {cause}")
        if stop is Stop.RESET:
            return self._error(f"the firmware requested a reset ({self._guest.model.reset_request})")
        if stop is Stop.EXCEPTION:
            return self._error(self._guest.model.trap_text(self._guest.state.exception))
        if stop is Stop.ERROR:
            return self._error(self._guest.error_text(self._guest.state.error))
        if stop is Stop.ASLEEP and not self._wakes_on_input():
            return self._error("the firmware sleeps (wfi) and nothing is left that could wake it")
        return ended

    def _called(self) -> EngineError | None:
        """Carry out a call to the host; return the error that ends the session, as another breakpoint does."""
        try:
            semihosting.perform(self._guest, self._uart("console").append)
        except ExitError as error:
            return ExitError(error.status, self._stand(str(error)))
        except EngineError as error:
            return self._error(str(error), hint=error.hint)
        return None

    def _wakes_on_input(self) -> bool:
        return any(
            uart.interrupts_on_input and self._processor.is_enabled(uart.receive_line or 0)
            for uart in self._uarts.values()
        )

    @override
    def _record_words(self, address: int) -> tuple[int, ...]:
        return self._guest.words(address, self._architecture.fault_words)

    def _recorded_error(self, record: FaultRecord, fault: CoreFault | None) -> EngineError:
        """Return the error for a fault recorded by the firmware's start-up code, with details from the engine."""
        # the latest fault may be a later one than the recorded, whose pc tells that if it is known
        if fault is None or record.pc not in {None, self._registers_at(fault)["pc"]}:
            return self._error(record.reason, record.registers)
        access = access_text(fault.access, self._board, self._devices)
        return self._error(f"{record.reason}: {access}" if access else record.reason, fault=fault)

    def _registers_at(self, fault: CoreFault) -> dict[str, int]:
        return dict(zip(self._architecture.registers.all, fault.registers, strict=False))

    def _error(
        self,
        reason: str,
        registers: Registers | None = None,
        fault: CoreFault | None = None,
        hint: str | None = None,
    ) -> EngineError:
        return EngineError(reason, hint=hint, report=self._stand(reason, registers, fault))

    @override
    def crash_report(self, reason: str) -> CrashReport:
        return self._stand(reason)

    def _stand(self, reason: str, registers: Registers | None = None, fault: CoreFault | None = None) -> CrashReport:
        """Return the report on the guest as it was at a fault, or as it is now, with other registers if given."""
        executed = self._guest.executed()
        if fault is not None:
            registers, executed = self._registers_at(fault), int(fault.executed)
        registers = registers or self._guest.registers()
        notes = (
            f"{executed} instructions executed",
            *(note for uart in self._uarts.values() for note in uart.notes()),
            *(note for device in self._devices for note in device.model.notes),
            *self._register_notes(),
        )
        return self._report(reason, registers, self._guest.read_memory(registers.get("pc", 0), 4), notes)

    def _register_notes(self) -> list[str]:
        """Return the registers of the device whose model has failed, or of all devices if none has."""
        failed = [device for device in self._devices if device.model.fault is not None]
        return [
            f"registers of device {device.model.name}: {registers_text(found)}"
            for device in failed or self._devices
            if (found := device.model.registers())
        ]

    @override
    def _end(self) -> None:
        if self._debugger is not None:
            self._debugger.close()
