# SPDX-License-Identifier: Apache-2.0
"""What Vela compiles for: the device's configuration, and the options of the backend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.backends.device import Device
from ferrule.backends.ethos_u.configuration import Configuration, configuration
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.option import BackendOption
from ferrule.backends.target import Target
from ferrule.errors import FerruleError, UnsupportedError, place, unknown_name
from ferrule.reading import read_text

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
_FILE_HINT = "it is an .ini file as Vela's documentation describes, with sections System_Config and Memory_Mode"

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
        name="fast_memory",
        default="",
        meaning="the board's memory for the staged part with dedicated SRAM; empty for that of the tensors",
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
_DEFAULTS = {each.name: each.default for each in OPTIONS}


@frozen
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
    own = _read(Path(file)) if file else ""
    sections = _sections(Path(file), own) if file else ()
    return Settings(
        configuration=found,
        system_config=_own(options, "system_config", "System_Config", sections) if file else _system(found, options),
        memory_mode=_own(options, "memory_mode", "Memory_Mode", sections) if file else _mode(found, options),
        config_file=str(Path(file).resolve()) if file else VELA_FILE,
        config_text=own,
        optimise=_text(options, "optimise"),
        arena_cache_bytes=int(options.get("arena_cache_bytes", 0)),
    )


def fast_memory(options: ModelOptions) -> str:
    """Return the name of the memory for the staged part; empty for that of the tensors."""
    return _text(options, "fast_memory")


def timeout_s(options: ModelOptions) -> int:
    """Return the time limit for one call of Vela."""
    return int(options.get("timeout_s", _DEFAULTS["timeout_s"]))


def _text(options: ModelOptions, name: str) -> str:
    return str(options.get(name, _DEFAULTS[name]))


def _system(found: Configuration, options: ModelOptions) -> str:
    systems = _SYSTEMS[found.product]
    name = _text(options, "system_config") or DEFAULT
    if name == DEFAULT:
        return systems[0]
    if name in systems:
        return name
    if name.startswith(_U85):
        raise UnsupportedError(
            f"option 'system_config' of backend EthosU is '{name}', a system of Ethos-U85, which is not supported",
            hint=f"systems of {found.name}: {', '.join(systems)}",
        )
    if any(name in others for others in _SYSTEMS):
        raise FerruleError(
            f"option 'system_config' of backend EthosU is '{name}', which is no system of {found.name}",
            hint=f"systems of {found.name}: {', '.join(systems)}",
        )
    raise unknown_name("system configuration", name, systems, where="in Vela's file")


def _mode(found: Configuration, options: ModelOptions) -> str:
    name = _text(options, "memory_mode") or DEFAULT
    if name == DEFAULT:
        return _DEFAULT_MODES[found.product]
    if name not in _MODES:
        raise unknown_name("memory mode", name, _MODES, where="in Vela's file")
    return name


def _own(options: ModelOptions, option: str, kind: str, sections: Sequence[str]) -> str:
    """Return the name of a section of the user's file, which an option has to give."""
    known = [section.removeprefix(f"{kind}.") for section in sections if section.startswith(f"{kind}.")]
    name = _text(options, option)
    if not name or name == DEFAULT:
        raise FerruleError(
            f"option 'config_file' of backend EthosU needs option '{option}', the name of a section {kind} of the file",
            hint=f"the file has {', '.join(known) or 'none'}",
        )
    if name not in known:
        raise unknown_name(f"section {kind}", name, known, where="in the file of option 'config_file'")
    return name


def _sections(path: Path, text: str) -> Sequence[str]:
    import configparser

    parser = configparser.ConfigParser()
    try:
        parser.read_string(text, source=str(path))
    except configparser.Error as error:
        reason = " ".join(str(error).split())
        raise FerruleError(f"option 'config_file' of backend EthosU: {reason}", hint=_FILE_HINT) from error
    return parser.sections()


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise FerruleError(
            f"option 'config_file' of backend EthosU: cannot read '{path}': {reason}",
            hint=_FILE_HINT,
        ) from error
