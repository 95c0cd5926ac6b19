# SPDX-License-Identifier: Apache-2.0
"""Adapters and drivers, compiled for this host and loaded with the fakes that they run on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Generic, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ferrule import resources
from ferrule._typing import override
from ferrule.devices import Bytes, DeviceModel, RegisterTable
from ferrule.errors import FerruleError, MissingToolError, unknown_name
from ferrule.testing.cdata import CData
from ferrule.testing.compilation import FAKES, SANITIZERS, HostBuild
from ferrule.testing.fakes import Fakes
from ferrule.testing.platforms import CmsisFakes, ZephyrFakes
from ferrule.testing.registers import ArrayModel, Registers, RegisterSpace

F = TypeVar("F", bound=Fakes)
Path_ = str | Path
SANITIZE = "FERRULE_TESTING_SANITIZE"
"""The environment variable that says which sanitizers builds have; `run_sanitized` sets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What a platform's adapter stands on."""

    fakes: type[Fakes]
    folder: str
    headers: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    choices: tuple[tuple[str, str], ...] = ()
    """A source, and the macro that is not 0 where it belongs; with `!` before it, the macro that is 0 there."""

    def takes(self, source: str, defines: Mapping[str, str]) -> bool:
        """Whether a source of the adapter belongs into a build with these macros."""
        for name, macro in self.choices:
            if name == source and (defines.get(macro.removeprefix("!"), "0") == "0") != macro.startswith("!"):
                return False
        return True


_GROUNDS = {
    "zephyr": _Ground(
        fakes=ZephyrFakes,
        folder="zephyr",
        headers=(
            *("ferrule_fake_zephyr.h", "zephyr/pm/device_runtime.h", "zephyr/drivers/uart.h"),
            "zephyr/sys/ring_buffer.h",
        ),
        defines=(
            ("CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS", "1000"),
            ("CONFIG_FERRULE_DEVICE_GUARD_TIMEOUT_MS", "1000"),
            ("CONFIG_FERRULE_UART_RX_BYTES", "64"),
            ("CONFIG_FERRULE_UART_TX_BYTES", "64"),
            ("CONFIG_FERRULE_ACCELERATOR_INIT_PRIORITY", "80"),
        ),
        choices=(
            ("uart_polling.c", "CONFIG_FERRULE_UART_POLLING"),
            ("uart_interrupt.c", "!CONFIG_FERRULE_UART_POLLING"),
        ),
    ),
    "cmsis": _Ground(
        fakes=CmsisFakes,
        folder="cmsis",
        headers=("ferrule_fake_cmsis.h", "cmsis_os2.h"),
        defines=(("FERRULE_CMSIS_RTOS2", "1"),),
        choices=(("cmsis_counter.c", "FERRULE_CMSIS_RTOS2"),),
    ),
    "bare_metal": _Ground(fakes=Fakes, folder="host", choices=(("interrupt.c", "__arm__"),)),
}
_HOST_HEADERS = ("ferrule_fake.h", "ferrule_fake_port.h")
_PORT = ("FERRULE_PORT_H", '"ferrule_fake_port.h"')


class Library:
    """The functions and variables of the C under test; after each call, what went wrong under it is raised."""

    def __init__(self, library: CData, fakes: Fakes, ffi: CData) -> None:
        self.__dict__.update(_library=library, _fakes=fakes, _ffi=ffi)

    def __getattr__(self, name: str) -> CData:
        found = getattr(self._library, name)
        if not isinstance(found, self._ffi.CData) or self._ffi.typeof(found).kind != "function":
            return found

        def checked(*arguments: object) -> CData:
            result = found(*arguments)
            self._fakes.check()
            return result

        self.__dict__[name] = checked
        return checked

    @override
    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._library, name, value)


class Adapter(Generic[F]):
    """A library for tests: `lib` has its functions, `ffi` makes its structs, `fakes` is what it runs on."""

    def __init__(self, build: HostBuild, fakes: type[F]) -> None:
        if find_spec("cffi") is None:
            raise MissingToolError("the Python package cffi is missing", hint="pip install 'ferrule[testing]'")
        from cffi import FFI

        self.build = build
        self.ffi: CData = FFI()
        declared = build.declarations()
        try:
            self.ffi.cdef(declared)
        except Exception as error:
            raise FerruleError(
                f"{build.title}: cffi can't read its headers: {error}",
                hint="give only headers with plain declarations as `headers`",
            ) from error
        try:
            library = self.ffi.dlopen(str(build.library()))
        except OSError as error:
            raise FerruleError(
                f"{build.title} can't be loaded: {error}",
                hint="a function that is called has no fake: define it in one of `sources`",
            ) from error
        self._library = library
        self.fakes = fakes(self.ffi, library, build.fake_functions())
        self.lib: CData = Library(library, self.fakes, self.ffi)
        self._space = RegisterSpace(self.ffi, library, self.fakes)
        self._kept: list[object] = []
        self._held: list[object] = []

    def reset(self) -> None:
        """Forget calls, scripts, threads, time, registers and memory; variables of the C stay as they are."""
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
    ) -> Registers:
        """Put a device behind the registers at an address, and return the window, whose `log` has every access.

        Args:
            base: what the driver adds its offsets to.
            device: a model, which is reset; or an array of words, which keeps what is written.
            names: of the registers by offset; by default the model's own table, if it has one.
            interrupt: what runs when the device raises its line, such as the driver's handler `adapter.lib.npu_isr`.
        """
        model = device if isinstance(device, DeviceModel) else ArrayModel(device)
        table = getattr(model, "table", None) if names is None else names
        if isinstance(table, RegisterTable):
            table = {register.offset: register.name for register in table}
        window = Registers(base=base, model=model, names=table or {}, fakes=self.fakes, interrupt=interrupt)
        self._space.add(window)
        model.attach(bus=self._space.memory)
        if isinstance(device, DeviceModel):
            device.reset()
        return window

    def memory(self, address: int, size_bytes: int) -> Bytes:
        """Return memory that attached devices reach at an address of their bus, as an array of bytes."""
        data = np.zeros(size_bytes, np.uint8)
        self._space.share(data, address)
        return data

    def share(self, value: CData, *, address: int | None = None) -> int:
        """Let attached devices reach a value of C's, made by `new`; return its address on their bus.

        ferrule_bus_address() gives that address to a driver, for every pointer into the value.
        """
        self.keep(value)
        return self._space.share(np.frombuffer(self.ffi.buffer(value), np.uint8), address)

    def new(self, type_: str, value: object = None) -> CData:
        """Return a pointer to a new value of a C type, such as "struct npu *", which lives as long as it is held."""
        return self.ffi.new(type_) if value is None else self.ffi.new(type_, value)

    def keep(self, *values: CData) -> None:
        """Keep values for C that holds pointers to them, until `reset`."""
        self._held += values

    def address(self, name: str) -> CData:
        """Return the address of a variable of C, such as a driver's table."""
        return self.ffi.addressof(self._library, name)

    def call(self, function: CData, *arguments: object) -> CData:
        """Call a function by its pointer, such as a member of a driver's table, and raise what went wrong under it."""
        result = function(*arguments)
        self.fakes.check()
        return result

    def callback(self, signature: str, function: Callable[..., object]) -> CData:
        """Return a C function, such as "int32_t (void *context)", that calls a Python one.

        An exception in it is raised when the call from Python returns; C sees 0 meanwhile.
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
        memory_bytes: int = 0,
        activate: Callable[[CData], int] | None = None,
        deactivate: Callable[[CData], int] | None = None,
        check: Callable[[CData], int] | None = None,
        copy_to: Callable[[CData, int, CData, int], int] | None = None,
        copy_from: Callable[[CData, CData, int, int], int] | None = None,
    ) -> CData:
        """Return a `struct ferrule_driver *` whose functions are in Python; their calls stand in the record."""
        made = self.ffi.new("struct ferrule_driver *")
        text = self.ffi.new("char[]", name.encode())
        made.name = text
        made.memory_bytes = memory_bytes
        given = {"activate": activate, "deactivate": deactivate, "check": check}
        given |= {"copy_to": copy_to, "copy_from": copy_from}  # type: ignore[dict-item]
        for member, function in given.items():
            if function is not None:
                setattr(made, member, self._noted(self.ffi.typeof(getattr(made, member)), member, function))
        self._kept += [made, text]
        return made

    def _noted(self, signature: CData, name: str, function: Callable[..., int]) -> CData:
        def call(*arguments: object) -> int:
            result = function(*arguments)
            self.fakes.note(name, result)
            return result

        return self.callback(signature, call)


@overload
def build_adapter(
    platform: Literal["zephyr"],
    *,
    sources: Sequence[Path_] = (),
    headers: Sequence[str] = (),
    include_dirs: Sequence[Path_] = (),
    defines: Mapping[str, str | int] | None = None,
    sanitize: Sequence[str] | None = None,
    coverage: bool = False,
) -> Adapter[ZephyrFakes]: ...
@overload
def build_adapter(
    platform: Literal["cmsis"],
    *,
    sources: Sequence[Path_] = (),
    headers: Sequence[str] = (),
    include_dirs: Sequence[Path_] = (),
    defines: Mapping[str, str | int] | None = None,
    sanitize: Sequence[str] | None = None,
    coverage: bool = False,
) -> Adapter[CmsisFakes]: ...
@overload
def build_adapter(
    platform: Path_,
    *,
    fakes: str | None = None,
    sources: Sequence[Path_] = (),
    headers: Sequence[str] = (),
    include_dirs: Sequence[Path_] = (),
    defines: Mapping[str, str | int] | None = None,
    sanitize: Sequence[str] | None = None,
    coverage: bool = False,
) -> Adapter[Fakes]: ...


def build_adapter(
    platform: Path_,
    *,
    fakes: str | None = None,
    sources: Sequence[Path_] = (),
    headers: Sequence[str] = (),
    include_dirs: Sequence[Path_] = (),
    defines: Mapping[str, str | int] | None = None,
    sanitize: Sequence[str] | None = None,
    coverage: bool = False,
) -> Adapter[CData]:
    """Compile the device API, a platform's adapter and sources of your own for this host, and load them.

    Args:
        platform: "zephyr", "cmsis" or "bare_metal"; or the folder of an adapter of your own, with `include/` and
            `src/`.
        fakes: what the adapter in such a folder stands on, "zephyr" or "cmsis"; by default on nothing but what is in
            `sources`.
        sources: C files of your own, such as a driver. Warnings are errors in them, as in the adapter.
        headers: what Python is to see besides the device API and the platform's headers, named as C includes them.
        include_dirs: where your headers are.
        defines: macros, such as {"CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS": 0}; "" for one without a value.
        sanitize: some of "address", "undefined", "thread"; by default what `run_sanitized` asks for, else none. The
            first needs `run_sanitized`.
        coverage: count lines and branches; see `Adapter.build` and `ferrule.testing.coverage`.

    Raises:
        FerruleError: a source or a compiler is missing, the C does not compile without a warning, or calls what
            has no fake.
    """
    root = resources.root()
    folder = root / "platforms" / platform if platform in _GROUNDS else Path(platform)
    name = str(platform) if platform in _GROUNDS else fakes or "bare_metal"
    if name not in _GROUNDS or fakes not in (None, name):
        raise unknown_name("platform with fakes", fakes or name, _GROUNDS)
    ground = _GROUNDS[name]
    if not (folder / "src").is_dir() or not (folder / "include").is_dir():
        raise FerruleError(
            f"{folder} is no adapter: it has no folders src and include",
            hint=f"name one of {', '.join(_GROUNDS)}, or the folder of an adapter",
        )
    everything = dict([_PORT, *ground.defines]) | {name: str(value) for name, value in (defines or {}).items()}
    own = [path for path in sorted((folder / "src").glob("*.c")) if ground.takes(path.name, everything)]
    public = [path for path in sorted((folder / "include").rglob("*.h")) if not path.name.endswith("_port.h")]
    build = _build(
        title=f"the adapter {folder.name}",
        ground=ground,
        sources=[*own, root / "src_c" / "device" / "device.c", *sources],
        headers=[*(path.relative_to(folder / "include").as_posix() for path in public), *headers],
        include_dirs=[folder / "include", *include_dirs],
        defines=everything,
        sanitize=sanitize,
        coverage=coverage,
    )
    return Adapter(build, ground.fakes)


def build_driver(
    *,
    sources: Sequence[Path_],
    headers: Sequence[str],
    include_dirs: Sequence[Path_] = (),
    defines: Mapping[str, str | int] | None = None,
    sanitize: Sequence[str] | None = None,
    coverage: bool = False,
) -> Adapter[Fakes]:
    """Compile a driver for this host and load it, without the device API; its registers are what `attach` puts there.

    The arguments are those of `build_adapter`; a driver that is to be opened and closed is built with that.
    """
    if not sources:
        raise FerruleError("there is no source to compile", hint="name the driver's C files in `sources`")
    build = _build(
        title=f"the driver {Path(sources[0]).stem}",
        ground=_GROUNDS["bare_metal"],
        sources=[*sources],
        headers=["ferrule/driver.h", "ferrule/status.h", *headers],
        include_dirs=include_dirs,
        defines=dict([_PORT]) | {name: str(value) for name, value in (defines or {}).items()},
        sanitize=sanitize,
        coverage=coverage,
    )
    return Adapter(build, Fakes)


def _build(
    *,
    title: str,
    ground: _Ground,
    sources: Sequence[Path_],
    headers: Sequence[str],
    include_dirs: Sequence[Path_],
    defines: Mapping[str, str],
    sanitize: Sequence[str] | None,
    coverage: bool,
) -> HostBuild:
    asked = os.environ.get(SANITIZE, "").split(",") if sanitize is None else sanitize
    sanitizers = tuple(name for name in asked if name)
    unknown = set(sanitizers) - set(SANITIZERS)
    if unknown:
        raise FerruleError(
            f"there is no sanitizer {', '.join(sorted(unknown))}", hint=f"known: {', '.join(SANITIZERS)}"
        )
    host = sorted((FAKES / "host").glob("*.c"))
    if ground.folder != "host":
        host = [path for path in host if path.name != "plain.c"] + sorted((FAKES / ground.folder).glob("*.c"))
    return HostBuild(
        title=title,
        sources=tuple(Path(source).resolve() for source in sources),
        fakes=tuple(host),
        headers=(*headers, *_HOST_HEADERS, *ground.headers),
        include_dirs=tuple(
            Path(folder).resolve()
            for folder in (*include_dirs, resources.root() / "include", FAKES / ground.folder, FAKES / "host")
        ),
        defines=tuple(defines.items()),
        sanitizers=sanitizers,
        coverage=coverage,
    )
