# SPDX-License-Identifier: Apache-2.0
"""Devices that are given up while they work: on the host, behind the drivers of templates, of pages and of Woofles.

Those of `ferrule init npu` and Woofles have commands in flight; the others wait by ferrule_device_wait().
"""

from __future__ import annotations

import importlib
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import woofles_bench
from device_calls import DeviceCalls
from disobedient import Manner, disobedient
from imported import forget
from pages import ROOT, write_backend
from woofles_bench import WooflesBench

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.woofles.model import Timing, WooflesModel
from ferrule.cli import main
from ferrule.devices import FaultInjector, RegisterModel, c_header
from ferrule.link.protocol import Status
from ferrule.testing import Adapter, CData

BASE = 0x4010_0000
DEFAULT = 2**32 - 1
"""FERRULE_WAIT_DEFAULT."""
STOP_US = 200
"""How long the device API looks whether a device has stopped: less than any device has to work."""
MACS = 16


class GivenUp(DeviceCalls):
    """A bound device with a command, and the memory that the command may write."""

    adapter: Adapter[Any]
    injector: FaultInjector
    masked = False
    """Whether the handler could not lower the interrupt, so that it is masked from then on."""
    work_us: int
    """How long the command takes."""

    @abstractmethod
    def execute(self, timeout_us: int = DEFAULT) -> int:
        """Run the command on the open device."""

    def start(self) -> int:
        """Begin the command and do not wait; a driver whose operators wait cannot."""
        return int(Status.UNSUPPORTED)

    @property
    @abstractmethod
    def memory(self) -> CData:
        """The memory that the command writes."""

    @property
    def is_lost(self) -> bool:
        return bool(self.lib.ferrule_device_is_lost(self.handle))

    def open_with(self, stop: CData) -> int:
        """Open the device for a run that can be cancelled and has a deadline."""
        return int(self.lib.ferrule_device_open_for(self.handle, DEFAULT, stop))

    def writes_within_us(self, us: int) -> bool:
        """Return whether the device writes to the memory of its command in this time; ContractError if it may not."""
        buffer = self.adapter.ffi.buffer(self.memory)
        buffer[:] = b"\xa5" * len(buffer)
        self.adapter.fakes.advance_ms(us / 1000)
        self.adapter.lib.ferrule_mmio_read32(BASE)  # the time of a device without an interrupt passes in accesses
        return bool(bytes(buffer) != b"\xa5" * len(buffer))

    def bind_with(self, driver: CData, context: CData) -> int:
        """Bind the handle, on whichever platform the adapter is for."""
        null = self.adapter.ffi.NULL
        if hasattr(self.lib, "ferrule_device_bind_soft"):
            return int(self.lib.ferrule_device_bind_soft(self.handle, driver, context))
        if hasattr(self.lib, "ferrule_cmsis_kernel_status"):
            return int(self.lib.ferrule_device_bind(self.handle, driver, context))
        return int(self.lib.ferrule_device_bind(self.handle, null, null, driver, context))

    def attach_with(self, model: RegisterModel, interrupt: Callable[[], object] | None) -> None:
        """Connect the model, whose interrupt calls a handler."""

        def handle() -> object:
            assert interrupt is not None
            cleared = interrupt()
            self.masked = self.masked or not cleared
            self.lib.ferrule_device_notify(self.handle)
            return cleared

        self.injector = FaultInjector(model)
        self.adapter.attach(BASE, self.injector, names=model.table, interrupt=handle if interrupt else None)


class Waiting(GivenUp):
    """A device whose operator waits by ferrule_device_wait()."""

    def __init__(self, adapter: Adapter[Any], name: str, model: RegisterModel, fields: Mapping[str, Any]) -> None:
        self.adapter, self.lib, self._name = adapter, adapter.lib, name
        adapter.reset()
        self.context: CData = adapter.new(f"struct {name} *", {"base": BASE, **fields})
        self.handle = adapter.new("struct ferrule_device *")
        adapter.keep(self.context, self.handle)
        handler = getattr(self.lib, f"{name}_interrupt", None) if fields.get("use_interrupt") else None
        self.attach_with(model, handler and (lambda: handler(self.context)))
        assert self.lib.ferrule_device_init(self.handle) == Status.OK
        assert self.bind_with(adapter.address(f"{name}_driver"), self.context) == Status.OK

    def share(self, kind: str, values: list[int], access: Any) -> CData:  # noqa: ANN401 a literal of share()
        """Return new memory for the device."""
        made = self.adapter.new(kind, values)
        self.adapter.keep(made)
        self.adapter.share(made, access=access, name=f"memory {access}")
        return made

    @override
    def execute(self, timeout_us: int = DEFAULT) -> int:
        limit = 0 if timeout_us == DEFAULT else timeout_us
        assert self.lib.ferrule_device_set_timeout(self.handle, limit) == Status.OK
        return self._operate()

    @abstractmethod
    def _operate(self) -> int:
        """Call the operator."""


class Comparing(Waiting):
    """The accelerator of `ferrule init accelerator`, or of docs/accelerators.md."""

    def __init__(self, adapter: Adapter[Any], name: str, model: RegisterModel, *, interrupt: bool) -> None:
        super().__init__(adapter, name, model, {"use_interrupt": interrupt})
        inputs = [self.share("int8_t[]", values, "read") for values in ([1, -2, 3], [-1, 2, 0])]
        self._operands = [*inputs, self.share("int8_t[]", [9, 9, 9], "write")]

    @override
    def _operate(self) -> int:
        return int(getattr(self.lib, f"{self._name}_maximum")(self.handle, *self._operands, 3))

    @property
    @override
    def memory(self) -> CData:
        return self._operands[-1]


class DocumentedTern(Waiting):
    """The NPU of docs/compile_only_npu.md, which has no interrupt."""

    def __init__(self, adapter: Adapter[Any], name: str, model: RegisterModel, *, interrupt: bool) -> None:
        assert not interrupt
        super().__init__(adapter, name, model, {"macs": MACS})
        self._operands = [self.share("int32_t[]", [0] * 8, "read"), self.share("int8_t[]", [1] * 4, "read")]
        self._output = self.share("int8_t[]", [9] * 4, "write")

    @override
    def _operate(self) -> int:
        program, vector = self._operands
        return int(self.lib.tern_run(self.handle, program, 32, vector, self._output))

    @property
    @override
    def memory(self) -> CData:
        return self._output


class Queued(GivenUp):
    """The NPU of `ferrule init npu`, by the bench of its own tests; its two commands are in flight."""

    def __init__(self, adapter: Adapter[Any], name: str, model: RegisterModel, *, interrupt: bool) -> None:
        adapter.reset()
        bench: Any = importlib.import_module(f"{name}.tests.test_driver")
        self.adapter, self.lib = adapter, adapter.lib
        self._bench = bench.Bench(adapter, use_interrupt=interrupt)
        self._bench.attach(self._injected(model))
        self.handle = self._bench.handle

    def _injected(self, model: RegisterModel) -> FaultInjector:
        self.injector = FaultInjector(model)
        return self.injector

    @override
    def start(self) -> int:
        return int(self._bench.start(0) or self._bench.start(1))

    @override
    def execute(self, timeout_us: int = DEFAULT) -> int:
        status = self.start()
        for _ in range(2):
            status = status or self.lib.ferrule_device_finish(self.handle, timeout_us)
        return int(status)

    @property
    @override
    def memory(self) -> CData:
        return self.adapter.ffi.cast("uint8_t(*)[64]", self._bench._out)[0]


class GivenUpWoofles(WooflesBench, GivenUp):
    """Woofles, with a command in flight."""

    def __init__(self, adapter: Adapter[Any], name: str, model: RegisterModel, *, interrupt: bool) -> None:
        del name
        adapter.reset()
        assert isinstance(model, WooflesModel)
        super().__init__(adapter, interrupt=interrupt, model=model)
        self._job = self.prepare(woofles_bench.jobs()["add"])

    @override
    def start(self) -> int:
        return int(self.lib.woofles_start(*self._job.arguments))

    @override
    def execute(self, timeout_us: int = DEFAULT) -> int:
        self._job.layer.timeout_us = 50_000 if timeout_us == DEFAULT else timeout_us
        return self._job.execute()

    @property
    @override
    def memory(self) -> CData:
        return self._job.output


# ---- where the drivers come from


@frozen
class Style:
    """A driver with its device."""

    package: str
    bench: Callable[..., GivenUp]
    work_us: int
    """How long the command takes: a cycle is a microsecond of virtual time."""
    folder: Path
    model: Callable[[], RegisterModel]

    @property
    def driver(self) -> Mapping[str, Any]:
        """The arguments for `build_adapter`."""
        if self.package == "woofles":
            return woofles_bench.DRIVER
        return {
            "sources": [self.folder / "src_c" / f"{self.package}.c"],
            "headers": [f"{self.package}/{self.package}.h"],
            "include_dirs": [self.folder / "include"],
        }

    def make(self, adapter: Adapter[Any], manner: Manner, *, interrupt: bool, stops_after_us: int = 0) -> GivenUp:
        """Return a new device that obeys in this manner."""
        model = disobedient(self.model, manner, cycles=stops_after_us)()
        return self.bench(adapter, self.package, model, interrupt=interrupt)


NAMES = ("accelerator", "npu", "yap", "tern", "woofles")
"""The styles: drivers of two templates and of two pages, and one with which Ferrule comes."""
IN_FLIGHT = ("npu", "woofles")
IMPATIENT = ("woofles",)
"""Those whose drivers expect that a reset is over at once."""
POLLED_ONLY = ("tern",)


PACKAGES = {"accelerator": "quitter", "npu": "leaver", "yap": "yap", "tern": "tern"}
"""The packages of the styles that are written."""


@contextmanager
def projects(folder: Path) -> Iterator[Mapping[str, Path]]:
    """Write the projects of the styles into a folder, and yield their packages, which can be imported meanwhile."""
    before = list(sys.path)
    for style in ("accelerator", "npu"):
        with suppress(SystemExit):
            main(["init", style, str(folder / style), "--id", PACKAGES[style].capitalize()])
    for style, page in (("yap", "accelerators.md"), ("tern", "compile_only_npu.md")):
        write_backend(ROOT / "docs" / page, PACKAGES[style], folder / style)
    sys.path[:0] = [str(folder / style) for style in PACKAGES]
    try:
        found = {style: folder / style / package for style, package in PACKAGES.items()}
        for style, package in PACKAGES.items():
            header = found[style] / "include" / package / "registers.h"
            header.write_text(c_header(model_of(package).TABLE), encoding="utf-8")
        yield found
    finally:
        sys.path[:] = before
        forget(*PACKAGES.values())


@contextmanager
def styles(folder: Path) -> Iterator[Mapping[str, Style]]:
    """Write all styles into a folder, for the host."""
    with projects(folder) as found:
        yield {
            "accelerator": _comparing(found["accelerator"]),
            "yap": _comparing(found["yap"]),
            "npu": _queued(found["npu"]),
            "tern": _documented_tern(found["tern"]),
            "woofles": Style(package="woofles", bench=GivenUpWoofles, work_us=2000, folder=folder, model=_slow_woofles),
        }


def model_of(package: str) -> Any:  # noqa: ANN401 a module that was just written
    """Return the module of a device's model."""
    return importlib.import_module(f"{package}.model")


def _comparing(folder: Path) -> Style:
    package = folder.name
    module, work_us = model_of(package), 2000
    module.CYCLES_OF_STARTING = work_us
    model = getattr(module, f"{package.capitalize()}Model")
    return Style(package=package, bench=Comparing, work_us=work_us, folder=folder, model=model)


def _queued(folder: Path) -> Style:
    package = folder.name
    module, work_us = model_of(package), 8000  # its reset is waited for, for a millisecond each time
    module.START_CYCLES = work_us
    model = getattr(module, f"{package.capitalize()}Model")
    return Style(package=package, bench=Queued, work_us=work_us, folder=folder, model=lambda: model(MACS))


def _documented_tern(folder: Path) -> Style:
    """A Tern that computes zeros: its programs are not what is tried here."""
    package = folder.name
    module, work_us = model_of(package), 2000

    class Layer:
        inputs = 4

    module.decode = lambda *_: [Layer()]
    module.cycles = lambda *_: work_us
    module.run = lambda *_: np.zeros(4, np.int8)
    return Style(
        package=package, bench=DocumentedTern, work_us=work_us, folder=folder,
        model=lambda: module.TernModel(MACS),
    )  # fmt: skip


def _slow_woofles() -> WooflesModel:
    return WooflesModel(Timing(command=2000))
