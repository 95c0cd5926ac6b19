# SPDX-License-Identifier: Apache-2.0
"""The models of one firmware as C code, with what they share: devices and library."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.backends.contribution import Contribution, merged
from ferrule.backends.firmware import device_declarations
from ferrule.codegen.artifact import Artifact
from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.shared_arena import arena_module, arena_sizes
from ferrule.codegen.writer import Writer
from ferrule.dom import (
    AddressOf,
    Const,
    Expression,
    Identifier,
    Linkage,
    StructType,
    Variable,
    designated,
)
from ferrule.errors import FerruleError
from ferrule.interface import either
from ferrule.rendering import Verbatim, one_line

_LONGEST = 32
"""Most characters of a symbol that is made from those of the models."""
_IDENTIFIER = re.compile(r"\bferrule_\w+", re.ASCII | re.IGNORECASE)


@frozen
class Program:
    """One or several models in one firmware; each device has one handle and one context for all of them.

    Raises:
        FerruleError: two models have the same C identifier, their generated names clash, or two devices do.
    """

    artifacts: tuple[Artifact, ...]
    """The models in the order of their numbers on the link, at least one."""
    in_software: Program | None = None
    """The same models on devices in software of the same names, for hosts without the devices; None if it is not
    wanted, no device needs it, or there is a reason in `no_software`."""
    no_software: str = ""

    def __post_init__(self) -> None:
        _check_names(self.artifacts)
        _check_devices(self.artifacts)

    @override
    def __repr__(self) -> str:
        return f"<Program {self.symbol}: {', '.join(map(repr, self.artifacts))}>"

    @property
    def symbol(self) -> str:
        """The C identifier of the program: that of its model, or those of its models together."""
        return program_symbol([artifact.symbol for artifact in self.artifacts])

    @property
    def single(self) -> Artifact | None:
        """The model of a program that has one; None if it has several."""
        return self.artifacts[0] if len(self.artifacts) == 1 else None

    @property
    def name(self) -> str:
        """The names of the models as text."""
        names = [artifact.graph.name for artifact in self.artifacts]
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

    @property
    def digest(self) -> str:
        """SHA-256 of the graph, or of the digests of several."""
        digests = [artifact.digest for artifact in self.artifacts]
        return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()

    @property
    def writer(self) -> Writer:
        """The language of the generated files."""
        return self.artifacts[0].writer

    @property
    def with_devices(self) -> tuple[Artifact, ...]:
        """The models that run layers on devices."""
        return tuple(artifact for artifact in self.artifacts if artifact.devices)

    @property
    def devices(self) -> tuple[DeviceUse, ...]:
        """The devices of all models, each once, numbered for the program."""
        found: dict[str, DeviceUse] = {}
        for artifact in self.artifacts:
            for use in artifact.devices:
                found.setdefault(use.device.name, use)
        return tuple(replace(use, index=index) for index, use in enumerate(found.values()))

    def devices_c(self, artifact: Artifact) -> Verbatim:
        """Return the C definition of `ferrule_<model>_default_devices`, which points to `<device>_device` of each."""
        names = {use.device.name: use.name for use in self.devices}
        handles = {use.name: AddressOf(Identifier(f"{names[use.device.name]}_device")) for use in artifact.devices}
        variable = Variable(
            f"ferrule_{artifact.symbol}_default_devices",
            Const(StructType(f"ferrule_{artifact.symbol}_devices")),
            value=designated(handles),
            linkage=Linkage.EXTERNAL,
        )
        return Verbatim(self.writer.declarations((variable,)))

    def device_c(self, name: str, address: Expression | None = None) -> Verbatim:
        """Return C definitions of the static storage that a program needs for a device; `<name>_context` comes last.

        `address` is written in place of the number of the registers' address.
        """
        use = next(each for each in self.devices if each.name == name)
        return Verbatim(self.writer.declarations(device_declarations(name, use.driver, address)))

    @property
    def arena(self) -> str:
        """The prefix of the names of the arena that the models share; "" if each has its own."""
        return self.artifacts[0].arena

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        """All C code that the generated files include and call, sorted by name, without the platform's."""
        return merged(part for artifact in self.artifacts for part in artifact.contributions)

    @property
    def files(self) -> dict[str, str]:
        """Generated text by file name."""
        shared = self.writer.files(arena_module(self.arena, self.artifacts), self._banner) if self.arena else {}
        return {name: text for artifact in self.artifacts for name, text in artifact.files.items()} | shared

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the files that are compiled, sorted; the others are headers."""
        return tuple(sorted(name for name in self.files if name.endswith(self.writer.source_suffix)))

    @property
    def workspace_bytes(self) -> int:
        """Size of the arenas of all models, or of the one that they share, and of each model's state."""
        states = sum(artifact.state_bytes for artifact in self.artifacts)
        if self.arena:
            return sum(arena_sizes(self.artifacts).values()) + states
        return sum(artifact.workspace_bytes for artifact in self.artifacts) + states

    @property
    def has_state(self) -> bool:
        """Whether a model keeps state from run to run."""
        return any(artifact.state_bytes for artifact in self.artifacts)

    @property
    def has_statistics(self) -> bool:
        """Whether the driver of a device has counts."""
        return any(use.driver.statistics for use in self.devices)

    @property
    def _banner(self) -> str:
        return (
            "SPDX-License-Identifier: Apache-2.0\n"
            f"Generated by ferrule {VERSION} from '{one_line(self.name)}' ({self.digest[:16]}). Do not edit."
        )


def program_symbol(symbols: Sequence[str]) -> str:
    """Return the C identifier of a program whose models have these."""
    joined = "_".join(symbols)
    return joined if len(symbols) == 1 or len(joined) <= _LONGEST else f"{symbols[0]}_and_{len(symbols) - 1}_more"


def _check_names(artifacts: Sequence[Artifact]) -> None:
    """Raise FerruleError if two models have the same symbol, or one has names that start with another's prefix."""
    hint = f"give the models other names: {either('--name, once for each model', 'ferrule.load(file, name)')}"
    owners: dict[str, Artifact] = {}
    for artifact in artifacts:
        other = owners.setdefault(artifact.symbol, artifact)
        if other is not artifact:
            raise FerruleError(
                f"models '{other.graph.name}' and '{artifact.graph.name}' both have the C identifier {artifact.symbol}",
                hint=hint,
            )
    for artifact in artifacts:
        longer = [each for each in artifacts if each.symbol.startswith(f"{artifact.symbol}_")]
        if not longer:
            continue
        names = {word for text in artifact.files.values() for word in _IDENTIFIER.findall(text)}
        for other in longer:
            prefix = f"ferrule_{other.symbol}"
            clash = next((n for n in sorted(names) if n.lower() == prefix or n.lower().startswith(f"{prefix}_")), None)
            if clash is not None:
                raise FerruleError(
                    f"the C name {clash} of model '{artifact.graph.name}' may also be one of model "
                    f"'{other.graph.name}', whose names start with {prefix}",
                    hint=hint,
                )


def _check_devices(artifacts: Sequence[Artifact]) -> None:
    """Raise FerruleError if models disagree on a device, or different devices would have the same C name."""
    names: dict[str, str] = {}
    devices: dict[str, DeviceUse] = {}
    for use in (use for artifact in artifacts for use in artifact.devices):
        known = devices.setdefault(use.device.name, use)
        if known.device != use.device:
            raise FerruleError(
                f"device '{use.device.name}' is not the same for all models: {known.device}, {use.device}",
                hint="generate all models with the same job",
            )
        if known is use and names.setdefault(use.name, use.device.name) != use.device.name:
            raise FerruleError(
                f"devices '{names[use.name]}' and '{use.device.name}' both have the C name {use.name}",
                hint="rename one of them",
            )
