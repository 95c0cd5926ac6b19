# SPDX-License-Identifier: Apache-2.0
"""GDB support for a guest: it is halted until GDB resumes it, and halts at breakpoints and on Ctrl-C."""

from __future__ import annotations

import contextlib

from ferrule.devices import DeviceFaultError
from ferrule.emulation.crash import EngineError
from ferrule.emulation.gdb import GdbConnection, GdbStub, Resume
from ferrule.emulation.gdb.packets import Event, Packet
from ferrule.emulation.unicorn.layout import Stop
from ferrule.emulation.unicorn.processor import Processor

SLICE_INSTRUCTIONS = 200_000
"""Largest number of instructions between two checks for Ctrl-C."""
TRAPPED, INTERRUPTED, FAULTED, TERMINATED = b"S05", b"S02", b"S0b", b"X0b"
_FATAL = (Stop.LOCKUP, Stop.RESET, Stop.EXCEPTION, Stop.ERROR)


class Debugger:
    """Runs a processor under GDB's control."""

    def __init__(self, processor: Processor, connection: GdbConnection) -> None:
        self._processor = processor
        self._guest = processor.guest
        self._connection = connection
        self._stub = GdbStub(self._guest, self._guest.registers_of)
        self._stands = True
        self._attached = True

    def run(self, instructions: int) -> Stop:
        """Run for about `instructions` instructions, with GDB's halts in between; see `Processor.run`.

        After a fault of a device model, GDB can inspect the guest before the run ends.

        Raises:
            EngineError: GDB ended the run.
            DeviceFaultError: a device model broke its contract.
        """
        try:
            return self._run(instructions)
        except DeviceFaultError:
            if self._attached:
                with contextlib.suppress(EngineError):  # GDB ended the run, which is over anyway
                    self._end(Stop.FAILED)
            raise

    def _run(self, instructions: int) -> Stop:
        while self._attached:
            if self._stands:
                stop = self._go_on()
                if stop is not None:
                    return stop
                continue
            stop = self._processor.run(min(instructions, SLICE_INSTRUCTIONS))
            if stop is Stop.BREAKPOINT:
                self._halt(TRAPPED)
            elif stop in _FATAL:
                return self._end(stop)
            elif self._connection.receive(0) is Event.INTERRUPT:
                self._halt(INTERRUPTED)
            else:
                if not self._connection.connected:
                    self._leave()
                return stop
        return self._processor.run(instructions)

    def _halt(self, why: bytes) -> None:
        self._stands = True
        self._processor.set_breakpoints(())
        self._connection.send(why)

    def _end(self, stop: Stop) -> Stop:
        """Let GDB inspect a guest that cannot continue, then disconnect."""
        self._halt(FAULTED)
        self._wait()
        self._connection.send(TERMINATED)
        self._leave()
        return stop

    def _go_on(self) -> Stop | None:
        """Resume the guest as GDB requests; return the reason if that ended the run, otherwise None."""
        how = self._wait()
        if how is Resume.DETACH:
            self._leave()
            return None
        stop = self._processor.step()  # also steps off a breakpoint
        if stop in _FATAL:
            return self._end(stop)
        if how is Resume.STEP or self._guest.register("pc") in self._stub.breakpoints:
            self._halt(TRAPPED)
        else:
            self._processor.set_breakpoints(sorted(self._stub.breakpoints))
            self._stands = False
        return None

    def _wait(self) -> Resume:
        """Serve GDB until it resumes the guest.

        Raises:
            EngineError: GDB ended the run.
        """
        self._connection.accept()
        how = self._serve()
        if how is Resume.KILL:
            self._leave()
            raise EngineError("gdb ended the run")
        return how

    def _serve(self) -> Resume:
        while (item := self._connection.receive(None)) is not None:
            if not isinstance(item, Packet):
                if item is Event.DAMAGED:
                    self._connection.send_raw(b"-")
                continue
            if self._stub.acknowledges:
                self._connection.send_raw(b"+")
            answer = self._stub.answer(item.payload)
            if not isinstance(answer, Resume):
                self._connection.send(answer)
                continue
            if answer in (Resume.DETACH, Resume.KILL):
                self._connection.send(b"OK")
            return answer
        return Resume.DETACH  # GDB closed the connection

    def _leave(self) -> None:
        self._processor.set_breakpoints(())
        self.close()

    def close(self) -> None:
        """Disconnect from GDB; a second call does nothing."""
        self._attached = False
        self._connection.close()
