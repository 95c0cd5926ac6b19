# SPDX-License-Identifier: Apache-2.0
"""What the code generator hands out: files, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferrule._typing import override
from ferrule.backends import BackendId
from ferrule.backends.contribution import Contribution
from ferrule.backends.firmware import device_declarations
from ferrule.codegen.c_writer import write_declarations
from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.schedule import DeviceCall
from ferrule.codegen.storage import StoragePlan
from ferrule.errors import unknown_name
from ferrule.graph import Graph, brief
from ferrule.memory import Ordering


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecord:
    """One operator of the executor, in the order of execution."""

    layer: str
    type: str
    kernel: str
    """Short name of the kernel, "view" where nothing is done, "copy" where a view had to become one."""
    backend: BackendId
    device: str
    """Name of the device instance; the backend's id where there are none."""
    macs: int
    constant_bytes: int
    """Flash that its weights and tables take."""
    scratch_bytes: int
    device_calls: tuple[DeviceCall, ...] = ()
    """The calls of devices before, in and behind it, if none fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A model as C, and what its user needs to know."""

    graph: Graph
    symbol: str
    """The C identifier of the model; files and functions are called ferrule_<symbol>..."""
    digest: str
    """SHA-256 of the graph."""
    files: Mapping[str, str]
    """Generated text by file name."""
    contributions: tuple[Contribution, ...]
    """All C that the generated files include and call, sorted by name; a project adds its platform's."""
    operators: tuple[OperatorRecord, ...]
    storage: StoragePlan
    ordering: Ordering
    """The order of the layers as it was chosen for the least memory, before copies of devices were moved in it."""
    workspace_bytes: int
    """The arena, kernel scratch included."""
    devices: tuple[DeviceUse, ...] = ()
    """The devices that run layers, in the order of the members of `struct ferrule_<symbol>_devices`."""

    @override
    def __repr__(self) -> str:
        devices = f", devices {', '.join(use.device.name for use in self.devices)}" if self.devices else ""
        return (
            f"<Artifact {brief(self.graph.name)}: {len(self.operators)} operators, {len(self.files)} files, "
            f"workspace {self.workspace_bytes:,} B{devices}>"
        )

    @property
    def device_calls(self) -> tuple[DeviceCall, ...]:
        """All calls of devices in one inference in which none fails, in order."""
        return tuple(call for record in self.operators for call in record.device_calls)

    def device(self, name: str) -> DeviceUse:
        """Return a device by name; FerruleError if the model uses none of that name."""
        for use in self.devices:
            if use.name == name:
                return use
        raise unknown_name("device of the model", name, [use.name for use in self.devices])

    def device_c(self, name: str) -> str:
        """Return the C of the static storage that a program needs for a device: `<name>_context` comes last."""
        return write_declarations(device_declarations(name, self.device(name).driver))
