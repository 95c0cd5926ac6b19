# SPDX-License-Identifier: Apache-2.0
"""The report of a run as data: what `--json` writes. Its JSON Schema is generated from these types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferrule._typing import override
from ferrule.graph import brief

SCHEMA_VERSION = 1
"""Raised when a field changes its meaning or goes away; new fields do not raise it."""


class Verdict(StrEnum):
    """How outputs compare with the numpy reference."""

    EXACT = "exact"
    """Bit for bit equal."""
    WITHIN_TOLERANCE = "within_tolerance"
    """float32 only: see `ferrule.report.compare`."""
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPart:
    """The model that ran."""

    name: str
    digest: str
    """SHA-256 of the network."""
    macs: int
    """Multiply-accumulates of one inference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPart:
    """How the firmware was built."""

    board: str
    cpu: str
    toolchain: str
    toolchain_version: str
    optimization: str
    build_s: float
    """Wall-clock seconds of the compiler and linker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPart:
    """What was counted."""

    unit: str
    """"instructions" or "cycles"."""
    resolution: int
    """The counter\'s step: 1 is exact, a coarser one is off by a few steps."""
    source: str
    """What counted: the emulator's cycle counter ("dwt"), a timer ("systick")."""
    per_inference: int
    """Of one whole inference, without the per-layer measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPart:
    """One layer."""

    index: int
    name: str
    type: str
    backend: str
    kernel: str
    macs: int
    count: int
    """In the unit of `CountPart`."""
    share: float
    """Of all layers' counts, 0 to 1."""
    constant_bytes: int
    scratch_bytes: int
    device: str = ""
    """Name of the device instance of the backend that ran it: the backend's own where no devices are declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashPart:
    """Read-only memory, in bytes."""

    code: int
    constants: int
    """Tables of code and kernels, initial values of variables."""
    weights: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RamPart:
    """Memory that is written, in bytes."""

    workspace: int
    """Activations and kernel scratch."""
    activations: int
    activations_certificate: str
    """"optimal", or how far above the proved lower bound; the same of the order of layers where that is not optimal."""
    stack_used: int
    """Painted before the inference and looked at afterwards: the deepest use during it."""
    stack_reserved: int
    other: int
    """Variables of the link, the drivers and the start-up."""
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPart:
    """What the firmware takes."""

    flash: FlashPart
    ram: RamPart


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePart:
    """A device behind the device API that runs layers."""

    name: str
    backend: str
    activation_lead: int
    """Operators before its first one at which it is activated."""
    memory_bytes: int
    """Its own memory; 0 where it works on the core's."""
    memory_used: int
    """Of that, what tensors and scratch take."""
    layers: int = 0
    """How many layers it ran, copies into and out of its memory included."""
    count: int = 0
    """What these took, in the unit of `CountPart`: for the core, which drives the device and waits for it."""
    share: float = 0.0
    """Of all layers' counts, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCallPart:
    """One call of a device."""

    operator: int
    """Index of the layer round which it was made."""
    layer: str
    device: str
    call: str
    """activate, open, copy_to, copy_from, run, close or deactivate."""
    status: int
    """0, or a negative `enum ferrule_status`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTracePart:
    """The calls of devices in one run, in order."""

    calls: tuple[DeviceCallPart, ...]
    as_planned: bool
    """Whether they are those that the generator scheduled, one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePart:
    """One inference."""

    index: int
    verdict: Verdict
    max_difference: float | None
    """The largest difference of an output element from the reference, in stored units for integers.

    None where it is no number: one of the two alone has a NaN or an infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferencePart:
    """Where a run that differs from the reference begins to."""

    layer: str = ""
    """The first layer with an output that differs; empty if none was found, and `note` says why."""
    type: str = ""
    backend: str = ""
    device: str = ""
    tensor: str = ""
    """That output."""
    max_difference: float | None = None
    """As in `SamplePart`."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDocument:
    """Everything that one `ferrule run` found out."""

    schema_version: int = SCHEMA_VERSION
    ferrule_version: str
    verdict: Verdict
    engine: str
    input: str
    """Where the inputs came from: "pattern" or the files."""
    model: ModelPart
    build: BuildPart
    count: CountPart
    layers: tuple[LayerPart, ...]
    memory: MemoryPart
    run_s: float
    """Wall-clock seconds of the engine, transfers included."""
    samples: tuple[SamplePart, ...]
    devices: tuple[DevicePart, ...] = ()
    device_trace: DeviceTracePart | None = None
    """None unless it was asked for."""
    faults: tuple[str, ...] = ()
    """What was injected into device models, by device."""
    first_difference: DifferencePart | None = None
    """None unless it was asked for and the run differs."""

    @override
    def __repr__(self) -> str:
        flash, ram = self.memory.flash.total, self.memory.ram.total
        plural = "" if len(self.samples) == 1 else "s"
        return (
            f"<ReportDocument {brief(self.model.name)} on {self.build.board} by {self.engine}: {self.verdict}, "
            f"{len(self.samples)} sample{plural}, {self.count.per_inference:,} {self.count.unit} per inference, "
            f"flash {flash:,} B, RAM {ram:,} B>"
        )


def json_schema() -> dict[str, object]:
    """Return the JSON Schema of the report."""
    import msgspec

    return msgspec.json.schema(ReportDocument)
