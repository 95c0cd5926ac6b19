# SPDX-License-Identifier: Apache-2.0
"""What the code generator hands out: files, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferrule.backends import BackendId
from ferrule.backends.firmware import Contribution, device_declarations
from ferrule.codegen.c_writer import write_declarations
from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.schedule import DeviceCall
from ferrule.codegen.storage import StoragePlan
from ferrule.errors import unknown_name
from ferrule.graph import Graph


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
    sources: tuple[str, ...]
    """C files below the resources' root that the generated ones call."""
    include_dirs: tuple[str, ...]
    """Folders below the resources' root."""
    contributions: tuple[Contribution, ...]
    """What comes from the folders of backends, one per folder, sorted by its name."""
    operators: tuple[OperatorRecord, ...]
    storage: StoragePlan
    workspace_bytes: int
    """The arena, kernel scratch included."""
    devices: tuple[DeviceUse, ...] = ()
    """The devices that run layers, in the order of the members of `struct ferrule_<symbol>_devices`."""

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
