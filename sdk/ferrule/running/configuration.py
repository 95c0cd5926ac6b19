# SPDX-License-Identifier: Apache-2.0
"""ferrule.toml: the board, toolchain, engine, backends and devices of a project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import structs

from ferrule.backends import BackendId, Device
from ferrule.backends.discovery import in_folders
from ferrule.backends.guarded import guarded
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.option import parse_options
from ferrule.backends.origin import NOT_TRIED
from ferrule.backends.registry import BackendRegistry, default_registry, registry_with
from ferrule.documents import convert, read_toml, schema_of
from ferrule.errors import FerruleError
from ferrule.firmware import Job
from ferrule.reading import exists
from ferrule.running.data_settings import DataSettings

CONFIGURATION_NAME = "ferrule.toml"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class DeviceEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[devices.<name>]: one instance of a backend."""

    backend: str
    binding: dict[str, str | int] = {}
    """How the platform finds the device: base address, devicetree label, port."""
    regions: tuple[str, ...] = ()
    """The board's memories that the device can access; empty for all."""
    activation_lead: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many operators before its first one the device is activated; None for its driver's default."""
    timeout_us: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)] | None = None
    """How many microseconds the firmware waits for one of the device's commands; None for its driver's default."""
    pool: bool = False
    """Whether it is one of the backend's interchangeable devices, of which any free one runs the layers of all."""


class BackendsEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[backends]: where the project's own backends are."""

    folders: tuple[str, ...] = ()
    """Folders relative to the file; each is that of one backend or contains several."""


class _Choices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a project chooses; a choice that it does not make is None."""

    board: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    """The board's name, or the path of its folder, relative to the file and with a `/`; `--board` precedes it."""
    toolchain: str | None = None
    """The compiler, such as zig or arm-none-eabi-gcc; `--toolchain` precedes it."""
    optimization: str | None = None
    """The optimization level, such as Os; `--optimization` precedes it."""
    overlap: Literal["on", "off"] | None = None
    """Whether devices work beside the core and one another; `--overlap` precedes it."""
    goal: Literal["speed", "balanced", "size", "memory", "time"] | None = None
    """The cost that is minimised where several kernels can run a layer; `--goal` precedes it."""
    price: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = {}
    """What a byte of `ram` or `flash` is worth in instructions of one inference, instead of the goal's price; `--price`
    precedes it."""
    input_rows: bool = False
    """Whether the firmware takes its input row by row; `--input-rows` switches it on, too."""
    engine: str | None = None
    """What runs the firmware, such as unicorn or qemu; `--engine` precedes it."""
    import_enabled: bool = False
    """Whether memory may pass from one backend to another on the host; `--import` switches it on, too."""


_OF_A_JOB = frozenset(_Choices.__struct_fields__) - {"engine"}


class ConfigurationFile(_Choices, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of ferrule.toml."""

    fallback: dict[str, Literal["import", "copy"]] = {}
    """By backend: whether tensors that pass to and from it on the host may be imported; `--fallback` precedes it."""
    backends: BackendsEntry = BackendsEntry()
    devices: dict[str, DeviceEntry] = {}
    data: DataSettings = DataSettings()


class Configuration(_Choices, frozen=True, kw_only=True):
    """The choices, backends and devices of a project."""

    fallback_transfers: Mapping[str, str] = {}
    """By backend: import or copy."""
    folders: tuple[Path, ...] = ()
    devices: tuple[Device, ...] = ()
    implicit: bool = False
    """Whether it was read from the current folder without being named; its backends run only where they are named."""
    data: DataSettings = DataSettings()
    """How samples become inputs; a file of classes is relative to the current folder or absolute."""
    dynamic: BackendRegistry | None = None
    """The registry that `with_dynamic_backends` has extended; None outside it."""

    def registry(self) -> BackendRegistry:
        """Return the registry of backends; FerruleError if a folder contains none or an id is already in use."""
        if self.dynamic is not None:
            return self.dynamic
        return registry_with(self.folders) if self.folders else default_registry()

    def listed_registry(self, named: Iterable[str]) -> BackendRegistry:
        """Return the registry for a command that tries all backends, without the code that nobody asked to run.

        Raises:
            FerruleError: as `registry` does.
        """
        registry = self.registry()
        wanted = set(named)
        untried = {
            BackendId(found.id): f"{NOT_TRIED}it is code of {CONFIGURATION_NAME} in this folder, which runs only where "
            f"a command names it, such as `ferrule backends {found.id}`"
            for found in (in_folders(self.folders) if self.implicit else ())
            if found.has_code and found.id not in wanted
        }
        return registry.scope(without=untried) if untried else registry

    def with_devices(self, options: Iterable[str]) -> Configuration:
        """Return the configuration with the devices of `--device` options, "name=Backend", added.

        A device that exists already is moved to the given backend and keeps its binding and regions.

        Raises:
            FerruleError: an option is malformed, or two have the same name.
        """
        devices = {device.name: device for device in self.devices}
        for name, backend in assignments("--device", options, "name=Backend, such as npu0=CpuAcc", "device").items():
            _check_name(f"--device {name}={backend}", name)
            known = devices.get(name, Device(name=name, backend=BackendId(backend)))
            devices[name] = replace(known, backend=BackendId(backend))
        return structs.replace(self, devices=tuple(devices.values()))

    @contextmanager
    def with_dynamic_backends(self, path: Path | None, *, isolate: bool = False) -> Iterator[Configuration]:
        """Yield the configuration with the dynamic backends of a folder, by default the default folders, registered.

        Each file is first tried in a child process; refused files are logged. With `isolate`, each backend runs in a
        process of its own.
        """
        from ferrule.backends.dynamic.load import load_dynamic_backends

        registry = self.registry().scope()
        try:
            load_dynamic_backends(registry, path, isolate=isolate)
            yield structs.replace(self, dynamic=registry)
        finally:
            registry.close()

    def job(self, chosen: Mapping[str, Any], options: Iterable[str] = ()) -> Job:
        """Return the job with what is chosen, or else what this project chooses, and with its backends and devices.

        `options` are the `--backend-option` options, "Backend.name=value". A choice that is None or empty is none.

        Raises:
            FerruleError: an option is malformed or given twice, or its backend does not accept it.
        """
        registry = self.registry()
        given = {name: value for name, value in chosen.items() if value is not None and value != ""}
        choices: dict[str, Any] = {name: getattr(self, name) for name in _OF_A_JOB} | given
        for name in ("fallback_transfers", "price"):
            choices[name] = {**getattr(self, name), **(chosen.get(name) or {})}
        return Job(
            **{name: value for name, value in choices.items() if value is not None},
            devices=self.devices,
            model_options=_model_options(options, registry),
            registry=registry,
        )


def assignments(option: str, texts: Iterable[str], expected: str, what: str) -> dict[str, str]:
    """Return the values of options NAME=VALUE; FerruleError if one is malformed, or `what` it names is given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.rpartition("=")
        if not separator or not value:
            raise FerruleError(f"{option} {text}: expected {expected}")
        if name in found:
            raise FerruleError(f"{option} {text}: {what} '{name}' is given twice")
        found[name] = value
    return found


def read_configuration(path: Path | None = None) -> Configuration:
    """Read a configuration file; None selects ferrule.toml in the current folder, if it exists.

    Raises:
        FerruleError: the file cannot be read or is malformed; the message names the key.
    """
    implicit = path is None
    if path is None:
        path = Path(CONFIGURATION_NAME)
        if not exists(path):
            return Configuration()
    data = read_toml(path)
    devices = data.get("devices", {})
    for name, entry in devices.items() if isinstance(devices, dict) else ():
        where = f"{path}: [devices.{name}]"
        _check_name(where, name)
        convert(where, entry, DeviceEntry)
    contents = convert(str(path), data, ConfigurationFile)
    samples = contents.data
    if isinstance(samples.classes, str):
        samples = structs.replace(samples, classes=str(path.parent / samples.classes))
    choices = {name: getattr(contents, name) for name in _Choices.__struct_fields__}
    if contents.board is not None and "/" in contents.board:
        choices["board"] = str(path.parent.absolute() / contents.board)
    return Configuration(
        **choices,
        fallback_transfers=contents.fallback,
        folders=tuple(path.parent / folder for folder in contents.backends.folders),
        devices=tuple(
            Device(name=name, **structs.asdict(entry) | {"backend": BackendId(entry.backend)})
            for name, entry in contents.devices.items()
        ),
        data=samples,
        implicit=implicit,
    )


def configuration_schema() -> dict[str, object]:
    """Return the JSON Schema of ferrule.toml; docs/schemas/ferrule.toml.json is a copy."""
    return schema_of(ConfigurationFile)


def _model_options(options: Iterable[str], registry: BackendRegistry) -> dict[str, ModelOptions]:
    texts: dict[str, dict[str, str]] = {}
    for option in options:
        place, separator, value = option.partition("=")
        backend, dot, name = place.rpartition(".")
        if not separator or not dot or not backend or not name:
            raise FerruleError(
                f"--backend-option {option}: expected Backend.name=value, such as CpuAcc.num_threads=2",
                hint="`ferrule backends` lists the options",
            )
        if name in texts.setdefault(backend, {}):
            raise FerruleError(f"--backend-option {option}: option '{name}' of backend {backend} is given twice")
        texts[backend][name] = value
    return {
        backend: parse_options(backend, guarded(registry.create(backend)).model_options(), given)
        for backend, given in texts.items()
    }


def _check_name(where: str, name: str) -> None:
    if not _IDENTIFIER.fullmatch(name):
        raise FerruleError(f"{where}: '{name}' is not a device name, expected a C identifier such as npu0")
