# SPDX-License-Identifier: Apache-2.0
"""Scripts for the fakes that C under test runs on: failures, interrupts, threads, time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ferrule.errors import FerruleError, unknown_name
from ferrule.testing.calls import Call, trace
from ferrule.testing.cdata import CData

_ALL = 0xFFFF_FFFF
_FIRST_RUN = 11


class MisuseError(FerruleError):
    """The C under test called a function in a way that the real one forbids, or all threads are blocked for ever."""


class BalanceError(FerruleError):
    """The C under test still holds something, such as an open device, power or a lock."""


class Fakes:
    """The fakes on which an adapter or a driver runs in a test.

    Time is virtual: a call takes a microsecond, and when all threads wait, the clock advances to the next event. Start
    threads with `run`, so that the clock takes them into account.
    """

    def __init__(self, ffi: CData, library: CData) -> None:
        self.ffi = ffi
        """The interface of cffi to the library under test."""
        self.library = library
        numbers = range(library.ferrule_fake_function_count())
        self._known = {self._string(library.ferrule_fake_function(number)) for number in numbers}
        self._hooks: list[Callable[[], object]] = []
        self._errors: list[BaseException] = []
        self._kept: dict[str, CData] = {}
        self._hook = ffi.callback("void (uint32_t)", self._call_hook)
        self.reset()

    def reset(self) -> None:
        """Reset calls, scripts, threads and time."""
        self._hooks = []
        self._errors = []
        self.library.ferrule_fake_reset(self._hook)

    # ---- recorded calls

    @property
    def calls(self) -> list[Call]:
        """All calls since the last `reset` or `forget_calls`."""
        record = self.ffi.new("struct ferrule_fake_call *")
        calls = []
        for index in range(self.library.ferrule_fake_call_count()):
            self.library.ferrule_fake_call(index, record)
            calls.append(self._call(record))
        return calls

    def calls_of(self, name: str) -> list[Call]:
        """Return the calls of one function."""
        return [call for call in self.calls if call.name == name]

    @property
    def trace(self) -> str:
        """The calls as words, such as "lock on ctl ctl ctl"; `on=-5` failed. Calls without side effects are omitted."""
        return trace(self.calls)

    def forget_calls(self) -> None:
        """Clear the record of calls."""
        self.library.ferrule_fake_forget_calls()

    def note(self, name: str, result: int = 0) -> None:
        """Add an entry to the record, such as a call of the test's driver."""
        text = self._kept.setdefault(name, self.ffi.new("char[]", name.encode()))
        self.library.ferrule_fake_note(text, self.ffi.NULL, result)

    def check(self) -> None:
        """Raise the exception of a hook or the misuse of a fake, if any; every call through `Adapter.lib` does so."""
        if self._errors:
            raise self._errors.pop(0)
        count = self.library.ferrule_fake_misuse_count()
        if count:
            texts = [self._string(self.library.ferrule_fake_misuse(index)) for index in range(count)]
            self.library.ferrule_fake_forget_misuses()
            raise MisuseError("; ".join(texts))

    @property
    def left(self) -> list[str]:
        """What the C under test holds now: devices open or activated, power, locks, masked interrupts; [] if nothing.

        Each is a sentence, such as "npu0 is powered ...".
        """
        count = self.library.ferrule_fake_left_count()
        return [self._string(self.library.ferrule_fake_left(index)) for index in range(count)]

    def check_balance(self) -> None:
        """Raise BalanceError if the C under test holds anything; the fixtures of pytest do so at a test's end."""
        left = self.left
        if left:
            raise BalanceError(
                f"the C under test has not given back everything: {'; '.join(left)}",
                hint="close, deactivate, unlock or power off at the test's end, or mark the test ferrule_unbalanced",
            )

    # ---- scripted failures

    def fail(self, name: str, *, result: int, nth: int = 1, times: int | None = 1, on: object = None) -> None:
        """Make calls return a fixed result without any effect, such as -11 for -EAGAIN or 0 for a null pointer.

        Args:
            name: name of the fake, such as "k_mutex_lock", or "Send" for a USART.
            result: the return value.
            nth: the first call affected, counted from 1, from now on.
            times: number of calls affected; None for all later calls.
            on: the object (a pointer) whose calls are affected; by default any.
        """
        self._rule(name, nth, on, times=_ALL if times is None else times, replaces=1, result=result)

    def interrupt_before(self, name: str, handler: Callable[[], object], *, nth: int = 1, on: object = None) -> None:
        """Trigger an interrupt just before the nth call from now on, and run `handler` in it."""
        self._rule(name, nth, on, before=self.hook_number(handler), interrupts=1)

    def interrupt_after(self, name: str, handler: Callable[[], object], *, nth: int = 1, on: object = None) -> None:
        """Trigger an interrupt just after the nth call from now on, and run `handler` in it."""
        self._rule(name, nth, on, after=self.hook_number(handler), interrupts=1)

    def before(self, name: str, hook: Callable[[], object], *, nth: int = 1, on: object = None) -> None:
        """Call `hook` in the calling thread before the nth call from now on."""
        self._rule(name, nth, on, before=self.hook_number(hook))

    def after(self, name: str, hook: Callable[[], object], *, nth: int = 1, on: object = None) -> None:
        """Call `hook` in the calling thread after the nth call from now on."""
        self._rule(name, nth, on, after=self.hook_number(hook))

    def forget_scripts(self) -> None:
        """Remove all scripted failures, interrupts and hooks."""
        self.library.ferrule_fake_forget_rules()

    # ---- interrupts, threads and time

    @contextmanager
    def interrupt(self) -> Iterator[None]:
        """Run the calls of the block in an interrupt."""
        self.library.ferrule_fake_enter_interrupt()
        try:
            yield
        finally:
            self.library.ferrule_fake_leave_interrupt()

    @contextmanager
    def as_thread(self, number: int) -> Iterator[None]:
        """Run the calls of the block as another thread, without starting one.

        Waiting for an object that this host thread holds times out immediately, because no other thread can release it.
        """
        self.library.ferrule_fake_become(number)
        try:
            yield
        finally:
            self.library.ferrule_fake_become(0)

    @contextmanager
    def before_the_kernel(self) -> Iterator[None]:
        """Let the kernel not run yet within the block: it refuses what the real one refuses then."""
        self.library.ferrule_fake_start_kernel(0)
        try:
            yield
        finally:
            self.library.ferrule_fake_start_kernel(1)

    def set_priority(self, thread: int, priority: int) -> None:
        """Set a thread's priority, by its number as in `as_thread`; all begin with 0, and larger ones are more urgent.

        Those that wait for a mutex get it in the order of their priorities, and lend theirs to the thread that has it.
        """
        self.library.ferrule_fake_set_priority(thread, priority)

    def run(self, *functions: Callable[[], object]) -> list[object]:
        """Run each function in its own thread, and return the results when all have ended.

        Their numbers are 11, 12 and so on, in the order given. The first exception raised in any of them is raised
        again.
        """
        results: list[object] = [None] * len(functions)
        errors: list[BaseException] = []

        def work(index: int, function: Callable[[], object]) -> None:
            self.library.ferrule_fake_thread_begins(_FIRST_RUN + index)
            try:
                results[index] = function()
            except BaseException as error:  # noqa: BLE001 it is raised in the test's own thread
                errors.append(error)
            finally:
                self.library.ferrule_fake_thread_ends()

        threads = [threading.Thread(target=work, args=each) for each in enumerate(functions)]
        self.library.ferrule_fake_expect(len(threads))
        self.library.ferrule_fake_idle(1)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.library.ferrule_fake_idle(0)
        if errors:
            raise errors[0]
        self.check()
        return results

    @property
    def now_us(self) -> int:
        """The virtual time."""
        return int(self.library.ferrule_fake_now_us())

    def be_patient(self, seconds: float) -> None:
        """Set how long, in real time, a thread may wait for others that are running; 20 s by default.

        Increase it if a model computes for longer while a thread waits for its interrupt.
        """
        self.library.ferrule_fake_set_patience(round(seconds * 1000))

    def advance_ms(self, ms: float) -> None:
        """Advance the virtual time, and run the events that become due."""
        self.library.ferrule_fake_advance(round(ms * 1000))
        self.check()

    def at_ms(self, ms: float, handler: Callable[[], object]) -> None:
        """Call `handler` in an interrupt, `ms` milliseconds from now."""
        self.library.ferrule_fake_schedule(round(ms * 1000), self.hook_number(handler))

    # ---- for the other modules of this package

    def keep_error(self, error: BaseException) -> None:
        """Store an exception, to be raised after the current call into C has returned."""
        self._errors.append(error)

    def _call_hook(self, number: int) -> None:
        try:
            self._hooks[number - 1]()
        except BaseException as error:  # noqa: BLE001 C cannot pass it on; `check` raises it
            self.keep_error(error)

    def hook_number(self, hook: Callable[[], object]) -> int:
        """Register a function that C can call, and return its number."""
        self._hooks.append(hook)
        return len(self._hooks)

    def _rule(self, name: str, nth: int, on: object, *, times: int = 1, **fields: int) -> None:
        if nth < 1:
            raise FerruleError(f"{name}: calls are counted from 1, not {nth}")
        if name not in self._known:
            raise unknown_name("fake function", name, self._known)
        rule = self.ffi.new(
            "struct ferrule_fake_rule *", {"name": name.encode(), "pass": nth - 1, "times": times, **fields}
        )
        rule.object = self.ffi.NULL if on is None else self.ffi.cast("void *", on)
        self.library.ferrule_fake_add_rule(rule)

    def _call(self, record: CData) -> Call:
        return Call(
            name=self._string(record.name),
            object=int(self.ffi.cast("uintptr_t", record.object)),
            arguments=tuple(record.arguments[0 : record.argument_count]),
            result=record.result if record.returned else None,
            thread=record.thread,
            in_interrupt=bool(record.in_interrupt),
            time_us=record.time_us,
        )

    def _string(self, text: object) -> str:
        return str(self.ffi.string(text).decode())


class Wire:
    """The remote end of a serial port."""

    def __init__(self, fakes: Fakes, port: int) -> None:
        self._fakes = fakes
        self._port = port
        self._sent = bytearray()
        self._peer: Callable[[bytes], bytes | None] | None = None
        fakes.library.ferrule_fake_on_sent(port, fakes.hook_number(self._take))

    @property
    def received(self) -> bytes:
        """All bytes that the C under test has sent."""
        return bytes(self._sent)

    def send(self, data: bytes, *, after_ms: float = 0) -> None:
        """Send bytes to the C under test, immediately or after a delay."""
        if after_ms:
            self._fakes.at_ms(after_ms, lambda: self._deliver(data))
        else:
            self._deliver(data)
            self._fakes.check()

    def answer_with(self, peer: Callable[[bytes], bytes | None], *, after_ms: float = 1) -> None:
        """Call `peer` with the bytes that arrive, and send its result back after `after_ms`."""
        self._peer = peer
        self._after_ms = after_ms

    def _deliver(self, data: bytes) -> None:
        self._fakes.library.ferrule_fake_receive(self._port, data, len(data))

    def _take(self) -> None:
        buffer = bytearray(1 << 16)
        count = self._fakes.library.ferrule_fake_sent(self._port, self._fakes.ffi.from_buffer(buffer), len(buffer))
        data = bytes(buffer[:count])
        self._sent += data
        answer = self._peer(data) if self._peer is not None else None
        if answer:
            self.send(answer, after_ms=self._after_ms)
