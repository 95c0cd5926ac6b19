# SPDX-License-Identifier: Apache-2.0
"""Builds of adapters and drivers for this host, with the fakes that they run on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict, Unpack, overload

from ferrule import resources
from ferrule._frozen import frozen
from ferrule.errors import FerruleError, unknown_name
from ferrule.reading import is_folder
from ferrule.testing.cdata import CData
from ferrule.testing.compilation import FAKES, PRELOADED, HostBuild, check_sanitizers
from ferrule.testing.fakes import Fakes
from ferrule.testing.loaded import Adapter
from ferrule.testing.platforms import CmsisFakes, ZephyrFakes

Path_ = str | Path
SANITIZE = "FERRULE_TESTING_SANITIZE"
"""Environment variable with the sanitizers for builds, separated by commas; set by `run_sanitized`."""


@frozen
class _Ground:
    """The fakes and macros that a platform's adapter needs."""

    fakes: type[Fakes] = Fakes
    """Its class; those of a platform that uses the plain one have no ports and events of their own."""
    folder: str
    headers: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    choices: tuple[tuple[str, str], ...] = ()
    """Optional sources, each with the macro that must be non-zero to include it; after `!`, the macro must be 0."""

    def takes(self, source: str, defines: Mapping[str, str]) -> bool:
        """Return whether a build with these macros includes a source of the adapter."""
        macro = dict(self.choices).get(source)
        return macro is None or (defines.get(macro.removeprefix("!"), "0") == "0") == macro.startswith("!")


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
    "freertos": _Ground(folder="freertos", headers=("FreeRTOS.h", "semphr.h", "task.h")),
    "threadx": _Ground(folder="threadx", headers=("tx_api.h",)),
    "bare_metal": _Ground(folder="host", headers=("fake_kernel.h",)),
}
_WATCHED = {
    "device.c": ("init", "activate", "deactivate", "recover", "open", "open_for", "close", "abort"),
    "command.c": ("submit", "submit_copy_to", "submit_copy_from", "wait", "finish"),
}
"""Functions that the fakes replace by functions that call them, note the handle's new state and tell the test."""
_HOST_HEADERS = ("ferrule_fake.h", "ferrule_fake_port.h")
_PORT = ("FERRULE_PORT_H", '"ferrule_fake_port.h"')


class _Options(TypedDict, total=False):
    """The options that all overloads of `build_adapter` have."""

    sources: Sequence[Path_]
    headers: Sequence[str]
    include_dirs: Sequence[Path_]
    defines: Mapping[str, str | int] | None
    sanitize: Sequence[str] | None
    coverage: bool


@overload
def build_adapter(platform: Literal["zephyr"], **options: Unpack[_Options]) -> Adapter[ZephyrFakes]: ...
@overload
def build_adapter(platform: Literal["cmsis"], **options: Unpack[_Options]) -> Adapter[CmsisFakes]: ...
@overload
def build_adapter(platform: Path_, *, fakes: str | None = None, **options: Unpack[_Options]) -> Adapter[Fakes]: ...


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
    """Compile the device API, a platform's adapter and your own sources for this host, and load them.

    Args:
        platform: "zephyr", "cmsis", "freertos", "threadx" or "bare_metal", or the folder of your own adapter, with
            `include/` and `src/`.
        fakes: the fakes for an adapter in a folder, "zephyr", "cmsis", "freertos" or "threadx"; by default the adapter
            can only call functions defined in `sources`.
        sources: your own C files, such as a driver. Warnings are errors in them, as in the adapter.
        headers: more headers to declare to Python, besides those of the device API and the platform; named as in an
            `#include`.
        include_dirs: folders of your headers.
        defines: macros, such as {"CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS": 0}; "" defines a macro without a value.
        sanitize: any of "address", "undefined" and "thread"; by default those that `run_sanitized` requests, otherwise
            none. "address" needs `run_sanitized`.
        coverage: count lines and branches; see `Adapter.build` and `ferrule.testing.coverage`.

    Raises:
        FerruleError: a source or a compiler is missing, the C does not compile without warnings, or it calls a function
            without a fake.
    """
    root = resources.root()
    shipped = platform in _GROUNDS and is_folder(root / "platforms" / platform)
    folder = root / "platforms" / platform if shipped else Path(platform)
    name = str(platform) if shipped else fakes or "bare_metal"
    if name not in _GROUNDS or fakes not in (None, name):
        raise unknown_name("platform", fakes or name, _GROUNDS, where="with fakes")
    ground = _GROUNDS[name]
    if not is_folder(folder / "src") or not is_folder(folder / "include"):
        raise FerruleError(
            f"{folder} is not an adapter: it lacks the folders src and include",
            hint=f"name one of {', '.join(each for each in _GROUNDS if is_folder(root / 'platforms' / each))}, or the "
            "folder of an adapter",
        )
    everything = dict([_PORT, *ground.defines]) | {name: str(value) for name, value in (defines or {}).items()}
    own = [path for path in sorted((folder / "src").glob("*.c")) if ground.takes(path.name, everything)]
    public = [path for path in sorted((folder / "include").rglob("*.h")) if not path.name.endswith("_port.h")]
    code = _Code(
        title=f"the adapter {folder.name}",
        sources=[*own, *sources],
        headers=[*(path.relative_to(folder / "include").as_posix() for path in public), *headers],
        include_dirs=[folder / "include", *include_dirs],
        defines=everything,
    )
    watched = root / "src_c" / "device"
    return Adapter(_build(code, ground, sanitize=sanitize, coverage=coverage, watched=watched), ground.fakes)


def build_driver(
    *,
    sources: Sequence[Path_],
    headers: Sequence[str],
    include_dirs: Sequence[Path_] = (),
    defines: Mapping[str, str | int] | None = None,
    sanitize: Sequence[str] | None = None,
    coverage: bool = False,
) -> Adapter[Fakes]:
    """Compile a driver for this host and load it, without the device API; `attach` provides its registers.

    The arguments are those of `build_adapter`. To test a driver through the device API, use `build_adapter`.
    """
    if not sources:
        raise FerruleError("there is no source to compile", hint="name the driver's C files in `sources`")
    code = _Code(
        title=f"the driver {Path(sources[0]).stem}",
        sources=sources,
        headers=["ferrule/driver.h", "ferrule/status.h", *headers],
        include_dirs=include_dirs,
        defines=dict([_PORT]) | {name: str(value) for name, value in (defines or {}).items()},
    )
    return Adapter(_build(code, _GROUNDS["bare_metal"], sanitize=sanitize, coverage=coverage), Fakes)


@frozen
class _Code:
    """What is compiled, as for `build_adapter`."""

    title: str
    """Name in messages."""
    sources: Sequence[Path_]
    headers: Sequence[str]
    include_dirs: Sequence[Path_]
    defines: Mapping[str, str]


def _build(
    code: _Code, ground: _Ground, *, sanitize: Sequence[str] | None, coverage: bool, watched: Path | None = None
) -> HostBuild:
    """Return the build; `watched` is the folder of the device API whose calls the fakes are told of."""
    asked = os.environ.get(SANITIZE, "").split(",") if sanitize is None else sanitize
    sanitizers = tuple(name for name in asked if name)
    check_sanitizers(sanitizers)
    for name, library in PRELOADED.items():
        if name in sanitizers and library not in os.environ.get("LD_PRELOAD", ""):
            raise FerruleError(
                f"the {name} sanitizer must be loaded before Python", hint="run the test through run_sanitized"
            )
    host = [path for path in sorted((FAKES / "host").glob("*.c")) if ground.fakes is Fakes or path.name != "plain.c"]
    if ground.folder != "host":
        host += sorted((FAKES / ground.folder).glob("*.c"))
    flags: list[tuple[Path, str]] = []
    sources = list(code.sources)
    if watched is not None:
        sources += [watched / name for name in _WATCHED]
        host += sorted((FAKES / "device").glob("*.c"))
        flags = [
            ((watched / file).resolve(), f"-Dferrule_device_{name}=ferrule_watched_device_{name}")
            for file, names in _WATCHED.items()
            for name in names
        ]
    return HostBuild(
        title=code.title,
        sources=tuple(Path(source).resolve() for source in sources),
        fakes=tuple(host),
        headers=(*code.headers, *_HOST_HEADERS, *ground.headers),
        include_dirs=tuple(
            Path(folder).resolve()
            for folder in (*code.include_dirs, resources.root() / "include", FAKES / ground.folder, FAKES / "host")
        ),
        defines=tuple(code.defines.items()),
        flags=tuple(flags),
        sanitizers=sanitizers,
        coverage=coverage,
    )
