# SPDX-License-Identifier: Apache-2.0
"""What Vela compiles for: the device's configuration, and the options of the backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ferrule.backends.device import Device
from ferrule.backends.ethos_u.configuration import Configuration, configuration
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.option import BackendOption
from ferrule.backends.target import Target
from ferrule.errors import FerruleError, UnsupportedError, place, unknown_name

DEFAULT_CONFIGURATION = "ethos-u55-128"
DEFAULT = "default"
VELA_FILE = "Arm/vela.ini"
"""The configuration file that Vela brings."""
_U85 = "Ethos_U85"
_MODES = ("Sram_Only", "Shared_Sram", "Dedicated_Sram", *(f"Dedicated_Sram_{size}KB" for size in (256, 384, 512)))
_SYSTEMS = (
    ("Ethos_U55_High_End_Embedded", "Ethos_U55_Deep_Embedded"),
    ("Ethos_U65_Client_Server", "Ethos_U65_Embedded", "Ethos_U65_Mid_End", "Ethos_U65_High_End"),
)
"""The system configurations of VELA_FILE, by product; the first is Vela's default."""
_DEFAULT_MODES = ("Shared_Sram", "Dedicated_Sram_384KB")
"""Vela's default memory modes, by product."""
_MOST_BYTES = (1 << 32) - 1

OPTIONS: Sequence[BackendOption] = (
    BackendOption(
        name="memory_mode",
        default=DEFAULT,
        meaning="which memories hold weights, tensors and staged data, by Vela's names",
        firmware=True,
    ),
    BackendOption(
        name="system_config",
        default=DEFAULT,
        meaning="clock and memories for Vela's estimates and decisions, by Vela's names",
        firmware=True,
    ),
    BackendOption(
        name="config_file",
        default="",
        meaning="an .ini file of Vela with system configurations and memory modes of your own",
        firmware=True,
    ),
    BackendOption(
        name="optimise",
        default="Performance",
        choices=("Performance", "Size"),
        meaning="whether Vela saves time or memory",
        firmware=True,
    ),
    BackendOption(
        name="arena_cache_bytes",
        default=0,
        lowest=0,
        highest=_MOST_BYTES,
        meaning="limit of the memory for tensors or, with dedicated SRAM, of the staged part; 0 for the memory mode's",
        firmware=True,
    ),
    BackendOption(
        name="timeout_s",
        default=600,
        lowest=1,
        highest=86_400,
        meaning="time limit for one call of Vela, in seconds",
        firmware=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What decides Vela's result for a model."""

    configuration: Configuration
    system_config: str
    memory_mode: str
    config_file: str
    """VELA_FILE, or the path of the user's file."""
    config_text: str = ""
    """What the user's file contains; empty for VELA_FILE."""
    optimise: str = "Performance"
    arena_cache_bytes: int = 0
    """0 for the memory mode's own."""

    def arguments(self) -> tuple[str, ...]:
        """Return Vela's command-line options."""
        limit = ("--arena-cache-size", str(self.arena_cache_bytes)) if self.arena_cache_bytes else ()
        return (
            *("--accelerator-config", self.configuration.name),
            *("--config", self.config_file),
            *("--system-config", self.system_config),
            *("--memory-mode", self.memory_mode),
            *("--optimise", self.optimise),
            *limit,
        )


def configuration_of_device(device: Device) -> Configuration:
    """Return the configuration that a device's binding names; without one, DEFAULT_CONFIGURATION.

    Raises:
        FerruleError: there is no such configuration, or it is one of Ethos-U85.
    """
    name = device.binding.get("configuration", DEFAULT_CONFIGURATION)
    with place(f"device '{device.name}'"):
        if not isinstance(name, str):
            raise FerruleError(f"configuration is {name!r}, expected a text such as '{DEFAULT_CONFIGURATION}'")
        return configuration(name)


def settings_of(target: Target) -> Settings:
    """Return what to compile for.

    Raises:
        FerruleError: the binding or an option names something that does not exist, or that fits another NPU.
    """
    found = configuration_of_device(target.device)
    options = target.options
    file = _text(options, "config_file")
    return Settings(
        configuration=found,
        system_config=_system(found, _text(options, "system_config") or DEFAULT, own=bool(file)),
        memory_mode=_mode(found, _text(options, "memory_mode") or DEFAULT, own=bool(file)),
        config_file=str(Path(file).resolve()) if file else VELA_FILE,
        config_text=_read(Path(file)) if file else "",
        optimise=_text(options, "optimise") or "Performance",
        arena_cache_bytes=int(options.get("arena_cache_bytes", 0)),
    )


def timeout_s(options: ModelOptions) -> int:
    """Return the time limit for one call of Vela."""
    return int(options.get("timeout_s", 600))


def _text(options: ModelOptions, name: str) -> str:
    return str(options.get(name, ""))


def _system(found: Configuration, name: str, *, own: bool) -> str:
    if name.startswith(_U85):
        raise UnsupportedError(
            f"option 'system_config' of backend EthosU is '{name}', a system of Ethos-U85, which is not supported",
            hint=f"systems of {found.name}: {', '.join(_SYSTEMS[found.product])}",
        )
    if own:
        if name == DEFAULT:
            raise FerruleError(
                "option 'config_file' of backend EthosU needs option 'system_config', the name of one of its systems"
            )
        return name
    systems = _SYSTEMS[found.product]
    if name == DEFAULT:
        return systems[0]
    if name not in systems:
        if any(name in others for others in _SYSTEMS):
            raise FerruleError(
                f"option 'system_config' of backend EthosU is '{name}', which is no system of {found.name}",
                hint=f"systems of {found.name}: {', '.join(systems)}",
            )
        raise unknown_name("system configuration", name, systems, where="in Vela's file")
    return name


def _mode(found: Configuration, name: str, *, own: bool) -> str:
    if own:
        if name == DEFAULT:
            raise FerruleError(
                "option 'config_file' of backend EthosU needs option 'memory_mode', the name of one of its modes"
            )
        return name
    if name == DEFAULT:
        return _DEFAULT_MODES[found.product]
    if name not in _MODES:
        raise unknown_name("memory mode", name, _MODES, where="in Vela's file")
    return name


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise FerruleError(
            f"option 'config_file' of backend EthosU: cannot read '{path}': {reason}",
            hint="it is an .ini file as Vela's documentation describes, with sections System_Config and Memory_Mode",
        ) from error
