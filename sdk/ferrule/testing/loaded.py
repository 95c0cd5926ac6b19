# SPDX-License-Identifier: Apache-2.0
"""Loaded adapters and drivers: calls into them, and the devices attached to their registers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ferrule._typing import override
from ferrule.devices import Bytes, DeviceModel, RegisterTable
from ferrule.errors import FerruleError, MissingToolError
from ferrule.scratch import ScratchFolder
from ferrule.testing.cdata import CData
from ferrule.testing.compilation import HostBuild
from ferrule.testing.fakes import Fakes
from ferrule.testing.kit_contract import Access
from ferrule.testing.registers import ArrayModel, Registers, RegisterSpace

F = TypeVar("F", bound=Fakes)
DriverCall = Callable[[CData], int]
"""A function of a driver, which gets its context and returns a status, a time or a truth."""
CopyTo = Callable[[CData, int, CData, int], int]
CopyFrom = Callable[[CData, CData, int, int], int]
_numbers = count()
_FILLS = (0xA5, 0x5A)
_UNRECORDED = ("is_over", "poll_us", "is_stopped")
"""Functions of a driver whose calls are not recorded."""


class Library:
    """The functions and variables of the C under test; each call raises the errors of hooks and fakes during it."""

    def __init__(self, fakes: Fakes) -> None:
        self.__dict__["_fakes"] = fakes

    def __getattr__(self, name: str) -> CData:
        found, ffi = getattr(self._fakes.library, name), self._fakes.ffi
        if not isinstance(found, ffi.CData) or ffi.typeof(found).kind != "function":
            return found

        def checked(*arguments: object) -> CData:
            result = found(*arguments)
            self._fakes.check()
            return result

        self.__dict__[name] = checked
        return checked

    @override
    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._fakes.library, name, value)


class Adapter(Generic[F]):
    """A library under test: `lib` has its functions, `ffi` creates its structs, `fakes` controls its fakes."""

    def __init__(self, build: HostBuild, fakes: type[F]) -> None:
        if find_spec("cffi") is None:
            raise MissingToolError("the Python package cffi is missing", hint="pip install 'ferrule[testing]'")
        from cffi import FFI

        self.build = build
        self.ffi: CData = FFI()
        build.declare(self.ffi)
        try:
            library = self.ffi.dlopen(str(_own_copy(build.library())))
        except OSError as error:
            raise FerruleError(f"{build.title} can't be loaded: {error}", hint=_remedy(str(error))) from error
        self.fakes = fakes(self.ffi, library)
        self.lib: CData = Library(self.fakes)
        self._space = RegisterSpace(self.fakes)
        self._kept: list[object] = []
        self._held: list[object] = []

    def reset(self) -> None:
        """Reset calls, scripts, threads, time, registers and memory; variables of the C keep their values."""
        self.fakes.reset()
        self._space.clear()
        self._held.clear()

    def attach(
        self,
        base: int,
        device: DeviceModel | npt.NDArray[np.uint32],
        *,
        names: Mapping[int, str] | RegisterTable | None = None,
        interrupt: Callable[[], object] | None = None,
        tensor_alignment: int = 1,
        transfer_alignment: int = 1,
    ) -> Registers:
        """Attach a device to the registers at an address, and return the register window, whose `log` has every access.

        Args:
            base: base address of the registers.
            device: a model, which is reset, or an array of words, which stores written values.
            names: names of the registers by offset; by default from the model's own table, if it has one.
            interrupt: called when the device raises its interrupt line, such as the driver's handler
                `adapter.lib.npu_isr`; if it returns False, the interrupt is masked from then on.
            tensor_alignment: the alignment of the memory that the device accesses, as its `DeviceDriver` states it.
            transfer_alignment: the alignment of the address of each transfer, likewise.
        """
        model = device if isinstance(device, DeviceModel) else ArrayModel(device)
        table = getattr(model, "table", None) if names is None else names
        if isinstance(table, RegisterTable):
            table = {register.offset: register.name for register in table}
        window = Registers(
            base=base,
            model=model,
            names=table or {},
            fakes=self.fakes,
            interrupt=interrupt,
            contract=self._space.contract,
        )
        self._space.add(window)
        self._space.contract.add_device(window.model.name, tensor=tensor_alignment, transfer=transfer_alignment)
        window.model.attach(bus=self._space.memory)
        if isinstance(device, DeviceModel):
            window.model.reset()
        return window

    def memory(self, address: int, size_bytes: int, *, access: Access = "any") -> Bytes:
        """Return memory that attached devices can access at a bus address, as an array of bytes; see `share`."""
        data = np.zeros(size_bytes, np.uint8)
        self._space.share(data, address, access=access, name=f"memory at {address:#010x}")
        return data

    def share(
        self,
        value: CData,
        *,
        address: int | None = None,
        size_bytes: int | None = None,
        access: Access = "any",
        name: str | None = None,
    ) -> int:
        """Make a C value created with `new` accessible to attached devices, and return its bus address.

        In a driver, ferrule_bus_address() converts every pointer into the value accordingly. The bus address has the
        alignment of the pointer, up to 4096 B.

        Args:
            value: the value, or a pointer into one that is kept otherwise.
            address: the bus address; by default a free one.
            size_bytes: the size of the memory behind a pointer; by default that of the value.
            access: what commands do with it: "read" for an input, "write" for an output, of which each byte must have
                been written when they are over, and which is filled with a pattern when they begin; "both" for
                scratch; "any" for what the device may access at any time but not write without a command, such as its
                ring.
            name: for messages; by default its type.

        Raises:
            FerruleError: the address is taken, or there is no such access.
        """
        self.keep(value)
        buffer = self.ffi.buffer(value) if size_bytes is None else self.ffi.buffer(value, size_bytes)
        title = self.ffi.typeof(value).cname if name is None else name
        return self._space.share(np.frombuffer(buffer, np.uint8), address, access=access, name=title)

    def check_written(self, run: Callable[[], object], *outputs: CData) -> None:
        """Run a function twice, over two different fills of its outputs; all their bytes must be written each time.

        Raises:
            FerruleError: bytes were left; the message names the output and the first of them.
        """
        left = []
        for fill in _FILLS:
            views = [np.frombuffer(self.ffi.buffer(each), np.uint8) for each in outputs]
            for view in views:
                view[:] = fill
            run()
            left.append([view == fill for view in views])
        for output, first, second in zip(outputs, *left, strict=True):
            places = np.flatnonzero(first & second)
            if places.size:
                raise FerruleError(
                    f"{places.size} B of '{self.ffi.typeof(output).cname}' were written by nobody, "
                    f"the first at byte {places[0]}"
                )

    def new(self, type_: str, value: object = None) -> CData:
        """Return a new C value of a pointer or array type, such as "struct npu *"; it lives as long as the result."""
        return self.ffi.new(type_, value)

    def keep(self, *values: CData) -> None:
        """Keep values alive until `reset`, for C that holds pointers to them."""
        self._held += values

    def address(self, name: str) -> CData:
        """Return the address of a C variable, such as a driver's table."""
        return self.ffi.addressof(self.fakes.library, name)

    def call(self, function: CData, *arguments: object) -> CData:
        """Call a function through its pointer, such as a member of a driver's table; errors are raised as for `lib`."""
        result = function(*arguments)
        self.fakes.check()
        return result

    def callback(self, signature: str | CData, function: Callable[..., object]) -> CData:
        """Return a C function of a signature, such as "int32_t (void *context)", that calls a Python function.

        An exception in it is raised when the call from Python returns; the C function returns 0.
        """

        def call(*arguments: object) -> object:
            try:
                return function(*arguments)
            except BaseException as error:  # noqa: BLE001 C cannot pass it on
                self.fakes.keep_error(error)
                return None if self.ffi.typeof(pointer).result.kind == "void" else 0

        pointer = self.ffi.callback(signature, call)
        self._kept.append(pointer)
        return pointer

    def driver(
        self,
        *,
        name: str = "test",
        is_passive: bool = True,
        memory_bytes: int = 0,
        activate: DriverCall | None = None,
        deactivate: DriverCall | None = None,
        check: DriverCall | None = None,
        copy_to: CopyTo | None = None,
        copy_from: CopyFrom | None = None,
        submit: Callable[[CData, CData], int] | None = None,
        submit_copy_to: CopyTo | None = None,
        submit_copy_from: CopyFrom | None = None,
        is_over: DriverCall | None = None,
        poll_us: DriverCall | None = None,
        finish: DriverCall | None = None,
        abort: DriverCall | None = None,
        is_stopped: DriverCall | None = None,
        depth: int = 0,
        timeout_us: int = 0,
    ) -> CData:
        """Return a `struct ferrule_driver *` whose functions are in Python; their calls are recorded.

        Those of `is_over`, `poll_us` and `is_stopped` are not: their number is irrelevant. A driver in Python has no
        device that accesses memory by itself, so it is passive, unless you say otherwise.
        """
        made = self.ffi.new("struct ferrule_driver *")
        text = self.ffi.new("char[]", name.encode())
        made.name = text
        made.memory_bytes, made.is_passive = memory_bytes, is_passive
        made.depth, made.timeout_us = depth, timeout_us
        given: dict[str, Callable[..., int] | None] = {
            "activate": activate,
            "deactivate": deactivate,
            "check": check,
            "copy_to": copy_to,
            "copy_from": copy_from,
            "submit": submit,
            "submit_copy_to": submit_copy_to,
            "submit_copy_from": submit_copy_from,
            "is_over": is_over,
            "poll_us": poll_us,
            "finish": finish,
            "abort": abort,
            "is_stopped": is_stopped,
        }
        for member, function in given.items():
            if function is not None:
                signature = self.ffi.typeof(getattr(made, member))
                note = self.callback if member in _UNRECORDED else partial(self._noted, member)
                setattr(made, member, note(signature, function))
        self._kept += [made, text]
        return made

    def _noted(self, name: str, signature: CData, function: Callable[..., int]) -> CData:
        def call(*arguments: object) -> int:
            result = function(*arguments)
            self.fakes.note(name, result)
            return result

        return self.callback(signature, call)


def _remedy(error: str) -> str:
    if "ferrule_device_" in error:
        return "the driver calls the device API, which build_adapter compiles, for example build_adapter('bare_metal')"
    return "a function that is called has no fake: define it in one of `sources`"


@cache
def _folder() -> ScratchFolder:
    return ScratchFolder()


def _own_copy(library: Path) -> Path:
    """Return a copy of the file: loading the same file twice gives a single library with one set of variables."""
    return Path(shutil.copy(library, _folder().path / f"{next(_numbers)}_{library.name}"))
