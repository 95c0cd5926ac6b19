# SPDX-License-Identifier: Apache-2.0
"""The results of the code generator: files and facts about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends import BackendId
from ferrule.backends.contribution import Contribution
from ferrule.backends.firmware import ConsideredKernel
from ferrule.codegen.conversions import is_converted
from ferrule.codegen.crossings import Crossing
from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.identity import Identity
from ferrule.codegen.schedule import Call, DeviceCall
from ferrule.codegen.storage import StoragePlan
from ferrule.codegen.writer import Writer
from ferrule.graph import Graph, brief
from ferrule.memory import Ordering
from ferrule.memory.request import Overlap
from ferrule.timing.planned import KernelWork

VIEW = "view"
"""The kernel of an operator without code."""


@frozen
class ScratchCopy:
    """A tensor that the core copies to an operator's scratch, or from there, since it cannot lie inside."""

    tensor: str
    offset: int
    """Bytes from the start of the scratch."""
    size_bytes: int
    inwards: bool
    """Whether it is an input."""
    reason: str
    """Why it cannot lie inside."""

    @property
    def text(self) -> str:
        """The copy in words, with the reason."""
        way = "to" if self.inwards else "from"
        return f"'{self.tensor}' ({self.size_bytes:,} B) is copied {way} byte {self.offset} of scratch: {self.reason}"


@frozen
class OperatorRecord:
    """One operator of the executor, in the order of execution."""

    layer: str
    type: str
    kernel: str
    """Short name of the kernel, "view" for an operator without code, or "copy" for a view that must be a copy."""
    backend: BackendId
    device: str
    """Name of the device instance; the backend's id for a backend without devices."""
    macs: int
    constant_bytes: int
    """Size of its weights and tables in flash; those that it shares count for the first layer that has them."""
    scratch_bytes: int
    cycles: int | None = None
    """Its backend's estimate of its time, in cycles of the core; None if the backend makes none."""
    works: tuple[KernelWork, ...] = ()
    """What kernels on the core do for it; empty for a view, and for an operator of a device."""
    device_calls: tuple[DeviceCall, ...] = ()
    """The device calls before, in and after the operator, if none fails."""
    considered: tuple[ConsideredKernel, ...] = ()
    """The kernels among which the lowering chose; empty if there was one."""
    bound: int | None = None
    """Instructions that the best kernels known take at least for such a layer; None if none are known."""
    overlaps: tuple[Overlap, ...] = ()
    """How far an output may overlap an input whose last reader is the operator."""
    copies: tuple[ScratchCopy, ...] = field(default=(), repr=False)
    """The inputs and outputs that it expects inside its scratch, but that the core copies."""


@frozen
class Artifact:
    """A model as C code, with the facts that its user needs."""

    graph: Graph
    symbol: str
    """The C identifier of the model; the names of files and functions start with ferrule_<symbol>."""
    arena: str = ""
    """The prefix of the names of an arena that several models share; "" for a workspace of its own."""
    digest: str
    """SHA-256 of the graph."""
    identity: Identity
    """The digests that the firmware carries; those of a project cover more sources, and its platform."""
    banner: str
    """The first comment of each generated file."""
    writer: Writer
    """The language of the generated files."""
    files: Mapping[str, str]
    """Generated text by file name."""
    tables: Mapping[str, bytes]
    """The constant tables in the generated files by symbol, as they lie in the memory of the board."""
    contributions: tuple[Contribution, ...]
    """All C code that the generated files include and call, sorted by name, without the platform's."""
    operators: tuple[OperatorRecord, ...]
    storage: StoragePlan
    ordering: Ordering
    """The order of the layers chosen for the least memory, before device copies were moved in it."""
    workspace_bytes: int
    """Size of the arena, including kernel scratch, without the state."""
    devices: tuple[DeviceUse, ...] = ()
    """The devices that run layers, in the order of the members of `struct ferrule_<symbol>_devices`."""
    input_rows: str = ""
    """The input that the model takes row by row; "" if there is none."""
    crossings: tuple[Crossing, ...] = ()
    """The tensors that cross between the core and devices, in order of execution."""

    @override
    def __repr__(self) -> str:
        devices = f", devices {', '.join(use.device.name for use in self.devices)}" if self.devices else ""
        state = f", state {self.state_bytes:,} B" if self.state_bytes else ""
        return (
            f"<Artifact {brief(self.graph.name)}: {len(self.operators)} operators, {len(self.files)} files, "
            f"workspace {self.workspace_bytes:,} B{state}{devices}>"
        )

    @property
    def converts(self) -> bool:
        """Whether the model's header has conversions between real numbers and quantised inputs or outputs."""
        return any(is_converted(info) for info in (*self.graph.inputs, *self.graph.outputs))

    @property
    def state_bytes(self) -> int:
        """Bytes that live from one run to the next; 0 for a model without state."""
        return self.storage.state_bytes

    @property
    def device_calls(self) -> tuple[DeviceCall, ...]:
        """All device calls of one inference in which none fails, in order."""
        return tuple(call for record in self.operators for call in record.device_calls)

    @property
    def ends(self) -> dict[int, int]:
        """By index of an operator that its device only begins there: that of the one after which it ends."""
        return {
            call.operator: index
            for index, record in enumerate(self.operators)
            for call in record.device_calls
            if call.call is Call.FINISH
        }

    @property
    def beside(self) -> tuple[tuple[str, ...], ...]:
        """By operator: the layers, begun before it, that devices go on with while it runs."""
        ends = self.ends
        return tuple(
            tuple(self.operators[begun].layer for begun, end in sorted(ends.items()) if begun < index <= end)
            for index in range(len(self.operators))
        )
