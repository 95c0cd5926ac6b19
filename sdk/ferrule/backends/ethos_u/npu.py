# SPDX-License-Identifier: Apache-2.0
"""The functional model of Ethos-U55 and U65: it executes the operations of a command stream in order.

It is bit-exact to TensorFlow Lite Micro for streams of Vela. It has not been compared with silicon, and modes that Vela
never emits are refused by name.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.activation import activation
from ferrule.backends.ethos_u.commands import Kind
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.convolution import Convolution
from ferrule.backends.ethos_u.dma import Copy
from ferrule.backends.ethos_u.elementwise import ElementwiseKernel
from ferrule.backends.ethos_u.errors import NpuBusError, StreamError
from ferrule.backends.ethos_u.hazards import Hazard, HazardTracker
from ferrule.backends.ethos_u.kernel import Execute, Kernel, Work
from ferrule.backends.ethos_u.machine import ArrayMemory, Machine, Memory
from ferrule.backends.ethos_u.native_execution import Workspace, accelerated
from ferrule.backends.ethos_u.native_structs import functions
from ferrule.backends.ethos_u.pooling import Pooling
from ferrule.backends.ethos_u.stream import WORKING, Operation, Payload, Words, operations
from ferrule.errors import FerruleError

__all__ = ["ArrayMemory", "Memory", "Npu", "Step"]

MAX_EFFORT = 1 << 32
"""The work after which a stream is refused, in estimated nanoseconds of this host."""
PLANS = 8
"""The number of streams whose preparation is kept."""
_PREPARATION, _NO_PREPARATION = 130_000, 20_000
"""Estimated nanoseconds for an operation that computes, and for others."""
_NO_WORK = Work()


@frozen
class Step:
    """An operation that was executed."""

    operation: Operation
    macs: int
    """Multiplications of weights."""
    bytes_read: int
    """Bytes of feature maps, weights and scales, each counted once."""
    bytes_written: int
    hazards: tuple[Hazard, ...] = ()
    """The waits that the stream lacks in front of the operation; empty unless the NPU checks them."""


def stepped(operation: Operation, kernel: Kernel | None, hazards: tuple[Hazard, ...] = ()) -> Step:
    """Return an operation with what it does when it is executed."""
    work = _NO_WORK if kernel is None else kernel.work
    return Step(
        operation=operation,
        macs=work.macs,
        bytes_read=work.bytes_read,
        bytes_written=work.bytes_written,
        hazards=hazards,
    )


@dataclass(slots=True, kw_only=True)
class _Plan:
    """A stream whose operations are prepared as far as they were executed once."""

    source: Iterator[Operation]
    tracker: HazardTracker | None
    prepared: list[tuple[Step, Execute | None]] = field(default_factory=list)
    effort: int = 0


def prepared(operation: Operation, configuration: Configuration) -> Kernel | None:
    """Return an operation ready for execution; None if it neither computes nor copies.

    Raises:
        StreamError: its registers contradict each other, or Vela never emits the mode.
    """
    with locating(operation):
        match operation.kind:
            case Kind.CONV | Kind.DEPTHWISE:
                return Convolution(operation, configuration)
            case Kind.POOL:
                return Pooling(operation, configuration)
            case Kind.ELEMENTWISE:
                return ElementwiseKernel(operation, configuration)
            case Kind.DMA_START:
                return Copy(operation)
        return None


@contextmanager
def locating(operation: Operation) -> Iterator[None]:
    """Let errors name the operation: an NpuBusError stays one, any other becomes a StreamError."""
    try:
        yield
    except NpuBusError as error:
        error.at(f"word {operation.word_offset} ({operation.name})")
        raise
    except FerruleError as error:
        located = error if isinstance(error, StreamError) else StreamError(str(error), hint=error.hint)
        located.locate(operation.word_offset, int(operation.kind), operation.name)
        raise located from error.__cause__


class Npu:
    """One NPU; the streams that it executed last stay prepared, and its internal memory keeps its contents.

    Operations are refused before they begin if the stream's work exceeds `effort_limit`, in estimated nanoseconds.
    With `native`, C that is compiled on first use computes the same results faster, if there is a compiler. One thread
    may use an NPU at a time.
    """

    def __init__(
        self,
        configuration: Configuration,
        memory: Memory,
        *,
        check_hazards: bool = False,
        native: bool = True,
        effort_limit: int = MAX_EFFORT,
    ) -> None:
        self.configuration = configuration
        self.check_hazards = check_hazards
        self.effort_limit = effort_limit
        self._machine = Machine(
            configuration=configuration,
            memory=memory,
            internal=np.zeros(configuration.shram_bytes, np.uint8),
        )
        self._plans: OrderedDict[bytes, _Plan] = OrderedDict()
        self._functions = functions() if native else None
        self._workspace = Workspace()

    def steps(self, words: Words) -> Iterator[Step]:
        """Execute one operation of a stream for each item, the last of them STOP.

        Raises:
            StreamError: a command is malformed, or its mode is not supported; earlier operations were executed.
            NpuBusError: an operation accessed memory where none is.
        """
        machine = self._machine
        digest, plan = self._plan(words)
        try:
            for step, execute in self._prepared(plan):
                if execute is not None:
                    with locating(step.operation):
                        execute(machine)
                yield step
        except FerruleError:
            self._plans.pop(digest, None)  # its parser has ended
            raise

    def table(self, operation: Operation) -> bytes:
        """Return the look-up table that an operation has used which was executed last; empty if it uses none."""
        if operation.kind not in WORKING or operation.kind is Kind.DMA_START:
            return b""
        table = activation(operation.registers, self.configuration).table
        return b"" if table is None else self._machine.view(table, "look-up table").tobytes()

    def run(self, payload: Payload) -> tuple[Step, ...]:
        """Execute a stream to its end; errors as for `steps`, and StreamError if it is for another configuration."""
        if payload.config_register != self.configuration.register:
            raise StreamError(
                f"the stream was compiled for CONFIG {payload.config_register:#010x}, and {self.configuration.name}"
                f" has {self.configuration.register:#010x}",
                hint="compile the stream for this configuration, or create the NPU with the stream's",
            )
        return tuple(self.steps(payload.words))

    def _prepared(self, plan: _Plan) -> Iterator[tuple[Step, Execute | None]]:
        for number in count():
            if number == len(plan.prepared):
                operation = next(plan.source, None)
                if operation is None:
                    return
                plan.prepared.append(self._prepare(plan, operation))
            yield plan.prepared[number]

    def _prepare(self, plan: _Plan, operation: Operation) -> tuple[Step, Execute | None]:
        kernel = prepared(operation, self.configuration)
        plan.effort += _NO_PREPARATION if kernel is None else kernel.work.effort + _PREPARATION
        if plan.effort > self.effort_limit:
            with locating(operation):
                raise StreamError(
                    f"the stream has more work than is executed: at most {plan.effort / 1e9:.1f} s of this host by an"
                    f" estimate that is above what it takes, and the limit is {self.effort_limit / 1e9:.1f} s",
                    hint="if the stream is right, create the NPU with a higher effort_limit",
                )
        step = stepped(operation, kernel, plan.tracker.issue(operation, kernel) if plan.tracker is not None else ())
        if kernel is None or self._functions is None:
            return step, None if kernel is None else kernel.execute
        return step, accelerated(kernel, self._functions, self._workspace)

    def _plan(self, words: Words) -> tuple[bytes, _Plan]:
        commands = np.ascontiguousarray(words, np.uint32)
        digest = hashlib.sha256(commands.tobytes()).digest()
        plan = self._plans.get(digest)
        if plan is None:
            tracker = HazardTracker(self.configuration) if self.check_hazards else None
            plan = self._plans[digest] = _Plan(source=operations(commands), tracker=tracker)
            while len(self._plans) > PLANS:
                self._plans.popitem(last=False)
        else:
            self._plans.move_to_end(digest)
        return digest, plan
