# SPDX-License-Identifier: Apache-2.0
"""The device API on the fake platform of tests/device, compiled for the host, and its Python interface."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from coverage_gate import counting
from needs import require_cc, require_module

from ferrule import resources
from ferrule.link.protocol import Status

CObject = Any
"""An object of cffi, whose functions and fields have no Python types."""

FOLDER = Path(__file__).parents[1] / "device"
DEVICE_C = resources.root() / "src_c" / "device" / "device.c"
PARTS = ("health.h", "turn.h")
"""The private headers of device.c, with functions of its own."""
COMMAND_C = resources.root() / "src_c" / "device" / "command.c"
"""Commands and waits, which device.c does not need."""
INCLUDE = resources.root() / "include"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
_HANDLE = re.compile(r"^struct ferrule_device \{.*?^\};", re.DOTALL | re.MULTILINE)
SANITIZERS = {
    "": (),
    "undefined": ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
    "address": ("-fsanitize=address", "-fno-omit-frame-pointer"),
}


class Event(IntEnum):
    """A call of the platform or of the driver, numbered as in `enum fake_event`."""

    INIT = 0
    DESTROY = 1
    LOCK = 2
    UNLOCK = 3
    READY = 4
    POWER_ON = 5
    POWER_OFF = 6
    ACTIVATE = 7
    DEACTIVATE = 8
    CHECK = 9
    COPY_TO = 10
    COPY_FROM = 11
    GUARD = 12
    CUT = 13
    WAIT = 14
    SUBMIT = 15
    SUBMIT_COPY_TO = 16
    SUBMIT_COPY_FROM = 17
    LOOK = 18
    FINISH = 19
    ABORT = 20
    YIELD = 21
    STOPPED = 22


def declarations(*headers: Path) -> str:
    """Return the declarations of headers, without preprocessor directives and comments."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in headers)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^#.*$", "", text, flags=re.MULTILINE).replace("[FAKE_EVENTS]", f"[{len(Event)}]")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ferrule-device-")


@cache
def library(mutation: tuple[str, str] | None = None, flags: tuple[str, ...] = ()) -> Fake:
    """Compile and load device.c over the fake platform; a mutation replaces one passage of device.c by another."""
    require_module("cffi", "pip install 'ferrule[run]'")
    compiler = require_cc()
    from cffi import FFI

    text = DEVICE_C.read_text(encoding="utf-8")
    if mutation is not None:
        for name in PARTS:
            text = text.replace(
                f'#include "ferrule/{name}"\n', (INCLUDE / "ferrule" / name).read_text(encoding="utf-8")
            )
        assert text.count(mutation[0]) == 1, f"{mutation[0]!r} occurs {text.count(mutation[0])} times in device.c"
        text = text.replace(*mutation)
    key = hashlib.sha256(repr((text, flags)).encode()).hexdigest()[:16]
    source = Path(_folder().name) / f"device_{key}.c"
    source.write_text(text, encoding="utf-8")
    output = source.with_suffix(".so")
    sanitizer = SANITIZERS[os.environ.get("FERRULE_TEST_SANITIZER", "")]
    if (counts := counting()) is not None and mutation is None:
        output = counts.with_name("device.so")
        flags = (*flags, "--coverage", "-O0")
    argv = [
        *(*compiler, "-std=c11", "-O1", "-g", "-shared", "-fPIC", *sanitizer, *flags),
        *(*(WARNINGS if mutation is None else ()), f"-I{INCLUDE}", f"-I{FOLDER}"),
        *("-o", str(output), str(source), str(COMMAND_C), str(FOLDER / "fake_platform.c")),
    ]
    subprocess.run(argv, check=True, timeout=120)
    ffi = FFI()
    names = ("status.h", "stop.h", "driver.h", "device.h")
    ffi.cdef(declarations(*(INCLUDE / "ferrule" / name for name in names)))
    ffi.cdef(
        "int32_t ferrule_device_bind_driver(ferrule_device_t *, const struct ferrule_driver *, void *);"
        "struct ferrule_place { struct ferrule_place *next; int32_t priority; bool waits; };"
        "int32_t ferrule_device_open_in_turn(ferrule_device_t *, uint32_t, struct ferrule_stop *,"
        " struct ferrule_place *);"
        "void ferrule_device_leave(ferrule_device_t *, struct ferrule_place *);"
        "uint32_t ferrule_device_users(ferrule_device_t *, uint32_t *);"
        + _HANDLE.sub("", declarations(FOLDER / "fake_platform.h"))
    )
    return Fake(ffi, ffi.dlopen(str(output)))


class Fake:
    """The compiled library; it has a single platform, which `reset` restarts."""

    def __init__(self, ffi: CObject, compiled: CObject) -> None:
        self.ffi = ffi
        self.lib = compiled
        self.state = compiled.fake
        self.null = ffi.NULL
        self.driver = compiled.fake_driver()
        self.bare_driver = compiled.fake_bare_driver()
        self.beside_driver = compiled.fake_beside_driver()
        self._hook: CObject | None = None
        self._failure: BaseException | None = None

    def reset(self) -> None:
        self.lib.fake_reset()
        self._hook = None
        self._failure = None

    def storage(self, fill: bytes = b"\0") -> CObject:
        """Return storage for a handle, filled with repetitions of `fill`."""
        size = self.lib.fake_device_bytes()
        memory = self.ffi.new("uint64_t[]", (size + 7) // 8)
        self.ffi.buffer(memory)[:] = (fill * size)[: self.ffi.sizeof(memory)]
        return self.ffi.gc(self.ffi.cast("ferrule_device_t *", memory), lambda _, kept=memory: kept)

    def copied(self, dev: CObject) -> CObject:
        """Return a copy of a handle, made byte by byte."""
        copy = self.storage()
        self.ffi.memmove(copy, dev, self.lib.fake_device_bytes())
        return copy

    def context(self, dev: CObject) -> CObject:
        context = self.ffi.new("struct fake_context *")
        context.dev = dev
        return context

    def fail(self, faults: Mapping[Event, int]) -> None:
        """Make the named events return these errors from now on, and all others succeed."""
        for event in Event:
            self.state.results[event] = faults.get(event, 0)

    def events(self) -> list[Event]:
        """Return the events since the last call; `GUARD` and `STOPPED` are not recorded."""
        events = [Event(self.state.trace[i]) for i in range(self.state.traced)]
        self.state.traced = 0
        return events

    @contextmanager
    def thread(self, number: int) -> Iterator[None]:
        """Act as another thread within the block."""
        before, self.state.thread = self.state.thread, number
        try:
            yield
        finally:
            self.state.thread = before

    @contextmanager
    def interrupt(self) -> Iterator[None]:
        """Act as an interrupt handler within the block."""
        self.state.in_interrupt = True
        try:
            yield
        finally:
            self.state.in_interrupt = False

    def watch(self, watcher: Callable[[Event], None]) -> None:
        """Call `watcher` just before each event takes effect, until `unwatch`."""

        def hook(number: int) -> None:
            try:
                watcher(Event(number))
            except BaseException as failure:  # noqa: BLE001 - C stands between; `done` raises it
                self._failure = self._failure or failure

        self._hook = self.ffi.callback("void(uint32_t)", hook)
        self.state.hook = self._hook

    def unwatch(self) -> None:
        self.state.hook = self.null

    def during(self, event: Event, action: Callable[[], None]) -> None:
        """Run `action` once, just before `event` takes effect."""

        def watcher(happening: Event) -> None:
            if happening is event:
                self.unwatch()
                action()

        self.watch(watcher)

    def done(self) -> None:
        """Raise the exception of a hook, if any, and check that the calls of the platform obeyed its contract."""
        if self._failure is not None:
            raise self._failure
        assert self.state.violations == 0
        assert self.state.hook == self.null, "the event of `during` never happened"


class Bench:
    """A library with one device, which can be brought into each state of the API."""

    def __init__(self, fake: Fake, driver: CObject | None = None) -> None:
        fake.reset()
        self.fake = fake
        self.driver = fake.driver if driver is None else driver
        self.lib = fake.lib
        self.dev = fake.storage()
        self.context = fake.context(self.dev)

    def bind(self) -> int:
        return int(self.lib.fake_bind(self.dev, self.driver, self.context))

    def bring(self, state: str) -> None:
        """Bring the device into a state of docs/platforms.md, uninitialised to open; foreign is open by thread 1."""
        lib, dev = self.lib, self.dev
        steps = (
            ("initialised", lambda: lib.ferrule_device_init(dev)),
            ("bound", self.bind),
            ("active", lambda: lib.ferrule_device_activate(dev)),
            ("open", lambda: lib.ferrule_device_open(dev)),
        )
        names = ["uninitialised", *(name for name, _ in steps)]
        for _, step in steps[: names.index("open" if state == "foreign" else state)]:
            assert step() == Status.OK
        if state == "foreign":
            self.fake.state.thread = 2
        self.fake.events()

    def call(self, name: str, dev: CObject | None = None) -> int:
        """Call a function of the API with valid arguments, on `dev` or else on the bench's own device."""
        target = self.dev if dev is None else dev
        ffi = self.fake.ffi
        if name == "bind":
            return int(self.lib.fake_bind(target, self.driver, self.context))
        data = ffi.new("uint8_t[4]")
        extra = {
            "copy_to": (0, data, 4),
            "copy_from": (data, 0, 4),
            "context": (self.driver, ffi.new("void **")),
        }
        return int(getattr(self.lib, f"ferrule_device_{name}")(target, *extra.get(name, ())))


DEFAULT = 2**32 - 1
"""FERRULE_WAIT_DEFAULT."""


class Beside(Bench):
    """A device whose driver has commands in flight."""

    def __init__(self) -> None:
        fake = library()
        super().__init__(fake, fake.beside_driver)
        self.context.poll_us = DEFAULT
        self.word = fake.ffi.new("uint32_t *")
        self.data = fake.ffi.new("uint8_t[8]")
        self.stop = fake.ffi.new("struct ferrule_stop *")

    def open(self) -> Beside:
        """Open the device with the run's stop."""
        self.bring("active")
        assert self.lib.ferrule_device_open_for(self.dev, DEFAULT, self.stop) == Status.OK
        self.fake.events()
        return self

    def submit(self) -> int:
        return int(self.lib.ferrule_device_submit(self.dev, self.driver, self.word))

    def finish(self, timeout_us: int = DEFAULT) -> int:
        return int(self.lib.ferrule_device_finish(self.dev, timeout_us))

    @property
    def in_flight(self) -> int:
        return int(self.lib.ferrule_device_in_flight(self.dev))

    def begin(self, deadline_us: int | None = None) -> None:
        """Begin a run, with a deadline that many microseconds from now."""
        null = self.fake.null
        at = null if deadline_us is None else self.fake.ffi.new("uint32_t *", self.fake.state.now_us + deadline_us)
        self.lib.ferrule_stop_begin(self.stop, at)


CALLS = (
    ("submit", lambda bench, dev: bench.lib.ferrule_device_submit(dev, bench.driver, bench.word)),
    ("copy to", lambda bench, dev: bench.lib.ferrule_device_submit_copy_to(dev, 0, bench.data, 4)),
    ("copy from", lambda bench, dev: bench.lib.ferrule_device_submit_copy_from(dev, bench.data, 0, 4)),
    ("finish", lambda bench, dev: bench.lib.ferrule_device_finish(dev, DEFAULT)),
    ("wait", lambda bench, dev: bench.lib.ferrule_device_wait(dev, bench.driver.is_over, DEFAULT)),
    ("abort", lambda bench, dev: bench.lib.ferrule_device_abort(dev)),
)
"""Calls that need the device open in this thread, by name."""
