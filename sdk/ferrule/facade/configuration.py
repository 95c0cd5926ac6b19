# SPDX-License-Identifier: Apache-2.0
"""ferrule.toml: a project's own backends and devices."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from ferrule.backends import BackendId, Device
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.option import parse_options
from ferrule.backends.registry import BackendRegistry, default_registry, registry_with
from ferrule.errors import FerruleError
from ferrule.firmware import Job

CONFIGURATION_NAME = "ferrule.toml"
_Kind = TypeVar("_Kind")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class DeviceEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[devices.<name>]: one instance of a backend."""

    backend: str
    binding: dict[str, str | int] = {}
    """How the platform finds it: base address, devicetree label, port."""
    regions: tuple[str, ...] = ()
    """The board's memories that it reaches; empty for all."""
    activation_lead: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Operators before its first one at which it is activated; by default what its driver says."""


class BackendsEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[backends]."""

    folders: tuple[str, ...] = ()
    """Relative to the file: each is one backend's, or holds several."""


class ConfigurationFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of ferrule.toml."""

    backends: BackendsEntry = BackendsEntry()
    devices: dict[str, DeviceEntry] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What a project says of backends and devices."""

    folders: tuple[Path, ...] = ()
    devices: tuple[Device, ...] = ()
    dynamic: BackendRegistry | None = None
    """What `with_dynamic_backends` made of the registry."""

    def registry(self) -> BackendRegistry:
        """Return where backends come from; FerruleError if a folder holds none, or an id is taken."""
        if self.dynamic is not None:
            return self.dynamic
        return registry_with(self.folders) if self.folders else default_registry()

    def with_devices(self, options: Iterable[str]) -> Configuration:
        """Return the configuration with devices as the command line has them, "name=Backend".

        One that is there already goes to that backend, with its binding and regions.

        Raises:
            FerruleError: an option is malformed, or two have one name.
        """
        devices = {device.name: device for device in self.devices}
        given: set[str] = set()
        for option in options:
            name, separator, backend = option.partition("=")
            if not separator or not backend:
                raise FerruleError(f"--device {option}: expected name=Backend, such as npu0=CpuAcc")
            _check_name(f"--device {option}", name)
            if name in given:
                raise FerruleError(f"--device {option}: device '{name}' is given twice")
            given.add(name)
            known = devices.get(name, Device(name=name, backend=BackendId(backend)))
            devices[name] = replace(known, backend=BackendId(backend))
        return replace(self, devices=tuple(devices.values()))

    @contextmanager
    def with_dynamic_backends(self, path: Path | None) -> Iterator[Configuration]:
        """Lend the configuration with the dynamic backends of one folder, or of the default ones, in its registry.

        Each file is tried in a child process first; those that are refused are logged.
        """
        from ferrule.backends.dynamic.load import load_dynamic_backends

        registry = self.registry().scope()
        try:
            load_dynamic_backends(registry, path)
            yield replace(self, dynamic=registry)
        finally:
            registry.close()

    def complete(self, job: Job, options: Iterable[str] = ()) -> Job:
        """Return a job with the backends and devices of this project.

        `options` are those of backends as the command line has them, "Backend.name=value".

        Raises:
            FerruleError: an option is malformed, stands twice, or its backend does not take it.
        """
        registry = self.registry()
        return replace(job, devices=self.devices, model_options=_model_options(options, registry), registry=registry)


def read_configuration(path: Path | None = None) -> Configuration:
    """Return what a file says; None stands for ferrule.toml in the current folder, if there is one.

    Raises:
        FerruleError: the file cannot be read or is malformed; the message names the key.
    """
    if path is None:
        path = Path(CONFIGURATION_NAME)
        if not path.exists():
            return Configuration()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FerruleError(f"{path}: {reason}") from error
    devices = data.get("devices", {})
    for name, entry in devices.items() if isinstance(devices, dict) else ():
        where = f"{path}: [devices.{name}]"
        _check_name(where, name)
        _convert(where, entry, DeviceEntry)
    contents = _convert(str(path), data, ConfigurationFile)
    return Configuration(
        folders=tuple(path.parent / folder for folder in contents.backends.folders),
        devices=tuple(
            Device(
                name=name,
                backend=BackendId(entry.backend),
                binding=entry.binding,
                regions=entry.regions,
                activation_lead=entry.activation_lead,
            )
            for name, entry in contents.devices.items()
        ),
    )


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
        backend: parse_options(backend, registry.create(backend).model_options(), given)
        for backend, given in texts.items()
    }


def _convert(where: str, data: object, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise FerruleError(f"{where}: {error}") from error


def _check_name(where: str, name: str) -> None:
    if not _IDENTIFIER.fullmatch(name):
        raise FerruleError(f"{where}: '{name}' is no device name, expected a C identifier such as npu0")
