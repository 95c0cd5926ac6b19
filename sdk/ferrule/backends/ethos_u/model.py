# SPDX-License-Identifier: Apache-2.0
"""Ethos-U55 and U65 as a device model: registers, a command stream in memory, DMA, timing and an interrupt.

The registers, and what software sees of a stream's end, of faults and of a reset, follow Arm's driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from ferrule._typing import override
from ferrule.backends.ethos_u.commands import Kind
from ferrule.backends.ethos_u.configuration import ARCH_ID, Configuration, configuration
from ferrule.backends.ethos_u.errors import NpuBusError
from ferrule.backends.ethos_u.machine import Bytes, Range
from ferrule.backends.ethos_u.npu import Npu, Step
from ferrule.backends.ethos_u.pmu import Event, Monitor
from ferrule.backends.ethos_u.registers import REGIONS, TABLE
from ferrule.backends.ethos_u.stream import WORKING, Operation, operations
from ferrule.backends.ethos_u.timing import AXI_BYTES, KNOWN, estimate
from ferrule.backends.ethos_u.weights import WeightError
from ferrule.devices import Bus, BusError, Register, RegisterModel
from ferrule.devices.model import NoBus
from ferrule.devices.registers import ArrayElement
from ferrule.errors import FerruleError

_CHANNELS = {"IFM": "IFM", "IFM2": "IFM", "weights": "WEIGHTS", "scales": "SCALES", "OFM": "OFM"}
"""The channel of a refused access, by the first word of what was accessed."""
_COUNTERS = {
    "PMCNTENSET": "counting",
    "PMCNTENCLR": "counting",
    "PMOVSSET": "overflows",
    "PMOVSCLR": "overflows",
    "PMINTSET": "interrupts",
    "PMINTCLR": "interrupts",
}


_EVENTS = {"PMEVCNTR%s": "events", "PMEVTYPER%s": "types"}
_BEATS = (
    (Event.AXI0_READ_BEATS, Event.AXI0_WRITE_BEATS),
    (Event.AXI1_READ_BEATS, Event.AXI1_WRITE_BEATS),
)
"""The events of reads and writes, by AXI port."""


class _Regions:
    """The memory of the NPU: the bus, at the addresses of the regions."""

    def __init__(self) -> None:
        self._bus: Bus = NoBus()
        self._bases = self._ports = (0,) * REGIONS
        self.traffic: Counter[Event] = Counter()
        """The bytes that have moved during the present operation, by the event that counts them in beats."""

    def place(self, bus: Bus, bases: tuple[int, ...], ports: tuple[int, ...]) -> None:
        """Set the addresses of the regions, and the AXI ports that lead to them."""
        self._bus, self._bases, self._ports = bus, bases, ports
        self.traffic.clear()

    def view(self, where: Range, *, writable: bool = False) -> Bytes:
        """Return the memory of a range, without a copy where the bus needs none."""
        if not 0 <= where.region < REGIONS:
            raise NpuBusError(where, f"there are {REGIONS} regions", writable=writable)
        try:
            array = self._bus.view(self._bases[where.region] + where.start, where.size_bytes, writable=writable)
        except BusError as error:
            raise NpuBusError(where, str(error), writable=writable) from error
        self.traffic[_BEATS[self._ports[where.region]][writable]] += where.size_bytes
        return array


@dataclass(slots=True, kw_only=True)
class _Run:
    """A stream that is being executed."""

    operations: Iterator[Operation]
    steps: Iterator[Step]
    known: Mapping[int, int]
    """Vela's durations, by the places of the commands in bytes; empty if they are not known."""
    current: Operation | None = None
    left: int = 0
    duration: int = 0
    is_known: bool = False


@dataclass(slots=True, kw_only=True)
class _Counts:
    streams: int = 0
    operations: int = 0
    macs: int = 0
    hazards: int = 0
    faults: int = 0
    estimated_cycles: int = 0
    estimated_cycles_by_vela: int = 0


class EthosUModel(RegisterModel):
    """Executes one operation after the other; an operation reads and writes its data at the end of its duration."""

    table = TABLE

    def __init__(self, kind: str | Configuration = "ethos-u55-128") -> None:
        super().__init__()
        self.configuration = configuration(kind) if isinstance(kind, str) else kind
        self._failure = ""
        self._counts = _Counts()
        self._regions = _Regions()
        self._npu = Npu(self.configuration, self._regions, check_hazards=True)
        self._run: _Run | None = None
        self._monitor = Monitor()
        self.reset()

    @override
    def statistics(self) -> Mapping[str, int | float]:
        return asdict(self._counts)

    @override
    def reset(self) -> None:
        super().reset()
        self._run = None
        self._monitor = Monitor()
        self.set_value("ID", ARCH_ID)
        self.set_value("CONFIG", self.configuration.register)

    @override
    def failure(self) -> str:
        return self._failure

    # ---- time

    @override
    def advance(self, cycles: int) -> None:
        while self._run is not None and cycles >= self._run.left:
            run = self._run
            cycles -= run.left
            self._monitor.pass_cycles(run.left, running=True)
            self._complete(run)
            self._continue()
        if self._run is not None:
            self._run.left -= cycles
        self._monitor.pass_cycles(cycles, running=self._run is not None)
        self._update_line()

    @override
    def next_event(self) -> int | None:
        return None if self._run is None else max(self._run.left, 1)

    # ---- registers

    @override
    def on_read(self, register: Register) -> int:
        monitor = self._monitor
        match register.name:
            case "PMCCNTR":
                return monitor.cycles & 0xFFFF_FFFF
            case "PMCCNTR_HIGH":
                return monitor.cycles >> 32
            case name if name in _COUNTERS:
                return int(getattr(monitor, _COUNTERS[name]))
            case _ if isinstance(register, ArrayElement) and register.array == "PMEVCNTR%s":
                return monitor.events[register.index]
            case _:
                return super().on_read(register)

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        register = self.table.at(offset)
        if register is not None and register.name in _COUNTERS:  # both registers of a pair show one set of bits
            self.set_value(register.name, getattr(self._monitor, _COUNTERS[register.name]))
        super().write(offset, width, value)

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        monitor = self._monitor
        match register.name:
            case "CMD":
                self._command(new)
            case "RESET":
                self.reset()
                self.set_value("PROT", new & (register.field("CPL").mask | register.field("CSL").mask))
                self.set_value("RESET", new)
            case "QBASE" | "QBASE_HIGH" | "QSIZE" if self._run is None:
                self.set_field("STATUS", "END_REACHED", 0)
            case "PMCR":
                self._control_monitor(new)
            case "PMCCNTR":
                monitor.cycles = monitor.cycles >> 32 << 32 | new
            case "PMCCNTR_HIGH":
                monitor.cycles = (new & 0xFFFF) << 32 | monitor.cycles & 0xFFFF_FFFF
            case name if name in _COUNTERS:
                setattr(monitor, _COUNTERS[name], new)
            case _ if isinstance(register, ArrayElement) and register.array in _EVENTS:
                getattr(monitor, _EVENTS[register.array])[register.index] = new
            case _:
                pass
        self._update_line()

    def _command(self, value: int) -> None:
        if self.field("CMD", "CLEAR_IRQ"):
            self.set_field("STATUS", "IRQ", 0)
            self.set_field("STATUS", "PMU_IRQ", 0)
            self._monitor.overflows = 0
        self.set_value("STATUS", self.value("STATUS") & ~(value & 0xFFFF_0000))
        if self.field("CMD", "RUN") and self._run is None and not self._has_failed():
            self._begin()

    def _control_monitor(self, value: int) -> None:
        self._monitor.enabled = bool(value & 1)
        if self.field("PMCR", "RESET_EVENTS"):
            self._monitor.events = [0] * len(self._monitor.events)
        if self.field("PMCR", "RESET_CYCLES"):
            self._monitor.cycles = 0
        self.set_field("PMCR", "RESET_EVENTS", 0)
        self.set_field("PMCR", "RESET_CYCLES", 0)

    def _has_failed(self) -> bool:
        return any(self.field("STATUS", name) for name in ("BUS", "PARSE_ERROR", "WEIGHT_FAULT", "ECC_FAULT"))

    def _update_line(self) -> None:
        if self._monitor.interrupt:
            self.set_field("STATUS", "PMU_IRQ", 1)
        self.irq.set(bool(self.field("STATUS", "IRQ") or self.field("STATUS", "PMU_IRQ")))

    # ---- streams

    def _begin(self) -> None:
        self._failure = ""
        self.set_field("STATUS", "RUNNING", 1)
        self.set_value("QREAD", 0)
        base = self._address("QBASE")
        try:
            data = self.bus.read(base, self.value("QSIZE") // 4 * 4)
        except BusError as error:
            self._fail("BUS", f"the command stream: {error}")
            return
        words = np.frombuffer(data, "<u4")
        configs = self.value("REGIONCFG")
        self._regions.place(
            self.bus,
            tuple(self._address(f"BASEP{region}") for region in range(REGIONS)),
            tuple(configs >> 2 * region + 1 & 1 for region in range(REGIONS)),
        )
        self._regions.traffic[_BEATS[self.value("QCONFIG") >> 1 & 1][False]] += len(data)
        self._run = _Run(operations=operations(words), steps=self._npu.steps(words), known=KNOWN.of(data))
        self._continue()

    def _address(self, register: str) -> int:
        high = self.value(f"{register}_HIGH") if self.configuration.product else 0
        return high << 32 | self.value(register)

    def _continue(self) -> None:
        """Complete the operations that take no time, and begin the next one that does."""
        while (run := self._run) is not None:
            try:
                run.current = next(run.operations)
            except FerruleError as error:
                self._fail("PARSE_ERROR", str(error))
                return
            run.left = run.duration = self._duration(run, run.current)
            if run.left:
                return
            self._complete(run)

    def _duration(self, run: _Run, operation: Operation) -> int:
        vela = run.known.get(4 * operation.word_offset)
        run.is_known = bool(vela)
        if vela:
            return vela
        is_beside = bool(run.known) and operation.kind is Kind.DMA_START
        return 0 if is_beside else estimate(operation, self.configuration)

    def _complete(self, run: _Run) -> None:
        """Execute the current operation, at the end of its duration."""
        operation = run.current
        assert operation is not None
        try:
            step = next(run.steps, None)
        except NpuBusError as error:
            self._refused(error)
            return
        except FerruleError as error:
            of_weights = isinstance(error.__cause__ or error.__context__, WeightError)
            self._fail("WEIGHT_FAULT" if of_weights else "PARSE_ERROR", str(error))
            return
        self.set_value("QREAD", 4 * (operation.word_offset + 1))
        if step is not None:
            self._count(run, operation, step)
        match operation.kind:
            case Kind.STOP:
                self._counts.streams += 1
                self.set_field("STATUS", "END_REACHED", 1)
                self._raise(operation.parameter)
                self._halt()
            case Kind.IRQ:
                self._raise(operation.parameter)
            case Kind.PMU_MASK if self.field("PMCR", "MASK_ENABLE"):
                self.set_field("PMCR", "ENABLE", operation.parameter & 1)
                self._monitor.enabled = bool(operation.parameter & 1)
            case _:
                pass

    def _count(self, run: _Run, operation: Operation, step: Step) -> None:
        counts = self._counts
        counts.hazards += len(step.hazards)
        if operation.kind not in WORKING:
            return
        counts.operations += 1
        counts.macs += step.macs
        counts.estimated_cycles += run.duration
        counts.estimated_cycles_by_vela += run.duration if run.is_known else 0
        beat = AXI_BYTES[self.configuration.product]
        beats = {event: -(-size_bytes // beat) for event, size_bytes in self._regions.traffic.items()}
        active = min(-(-step.macs // self.configuration.macs), run.duration)
        self._monitor.count({Event.MAC_ACTIVE: active, **beats})
        self._regions.traffic.clear()

    def _refused(self, error: NpuBusError) -> None:
        words = error.access.split()
        dma = "DMA_WRITE" if error.writable else "DMA_READ"
        channel = _CHANNELS.get(words[0], dma) if words else dma
        self.set_field("STATUS", "FAULT_CHANNEL", TABLE.register("STATUS").field("FAULT_CHANNEL").value(channel))
        config = self.value("REGIONCFG") >> 2 * (error.where.region & 7)
        self.set_field("STATUS", "FAULT_PORT", config >> 1 & 1)
        self._fail("BUS", str(error))

    def _fail(self, bit: str, message: str) -> None:
        self._failure = message
        self._counts.faults += 1
        self.set_field("STATUS", bit, 1)
        self._raise(0)
        self._halt()

    def _raise(self, history: int) -> None:
        self.set_field("STATUS", "IRQ", 1)
        self.set_field("STATUS", "IRQ_HISTORY", self.field("STATUS", "IRQ_HISTORY") | history)
        self._update_line()

    def _halt(self) -> None:
        self._run = None
        self.set_field("STATUS", "RUNNING", 0)
