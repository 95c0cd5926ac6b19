# SPDX-License-Identifier: Apache-2.0
"""The parts of the description of a network as data; `ferrule.report.inspection` has the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ferrule._frozen import frozen
from ferrule.codegen.acl.support import LayerUse
from ferrule.graph import Rounding
from ferrule.report.estimates import EstimatePart
from ferrule.report.picture import Assigned
from ferrule.report.sections import (
    Cell,
    Part,
    Picture,
    State,
    Table,
    Text,
    joined,
    names,
    numbers,
    runner,
)
from ferrule.timing.energy import digits_text

_MOST_CHARACTERS = 60
"""Of a parameter in a table."""


@frozen
class TensorPart:
    """The description of a tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    """Empty without quantisation; otherwise one scale for the tensor, or one per channel."""
    zero_points: tuple[int, ...]
    axis: int | None
    """The channel axis if there are several scales, otherwise null."""
    constant: bool

    @property
    def text(self) -> str:
        """Its type, shape and quantisation in words."""
        shape = "x".join(map(str, self.shape)) or "scalar"
        quantized = ""
        if len(self.scales) > 1:
            quantized = f"{len(self.scales)} scales on axis {self.axis}"
        elif self.scales:
            quantized = f"scale {self.scales[0]:.6g}, zero point {self.zero_points[0]}"
        return joined(f"{self.dtype} {shape}", quantized)


@frozen
class LayerInspection:
    """The description of a layer."""

    index: int
    name: str
    type: str
    parameters: dict[str, str]
    """The descriptor's fields that differ from their defaults."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int
    constant_bytes: int
    rounding: str = Rounding.TFLM.value
    """The rule by which it requantises; "tflm" if it does not."""
    inner: tuple[LayerInspection, ...] = ()
    """The layers of the graphs that the layer runs; the name of the graph precedes those of its layers."""

    def nested(self, number: str = "") -> Iterator[tuple[str, LayerInspection]]:
        """Yield the layer and those inside of it, with their numbers, such as "3.0"."""
        own = f"{number}{self.index}"
        yield own, self
        for each in self.inner:
            yield from each.nested(f"{own}.")

    @property
    def settings(self) -> str:
        """Its parameters in words, and its rule of rounding if it is another than that of TFLM."""
        rule = {} if self.rounding == Rounding.TFLM else {"rounding": self.rounding}
        return joined(*(f"{name}={_brief(value)}" for name, value in {**self.parameters, **rule}.items()))


def _brief(value: str) -> str:
    """Return the text of a parameter, of a long list, such as a look-up table, only its first values."""
    if len(value) <= _MOST_CHARACTERS:
        return value
    return f"{value[: value.rfind(',', 0, _MOST_CHARACTERS)]}, ... {value.count(',') + 1} values)"


@frozen
class RefusalPart:
    """A backend that does not support a layer."""

    backend: str
    reason: str


@frozen
class TakerPart:
    """The backend that supports a layer."""

    layer: str
    backend: str | None
    """None if no backend supports the layer."""
    device: str | None
    refusals: tuple[RefusalPart, ...]
    """The refusals, in order of preference, including backends after the chosen one."""

    @property
    def runner(self) -> Cell:
        """The backend that takes it."""
        if self.backend is None:
            return Cell("no backend", State.BAD)
        return Cell(runner(self.backend, self.device))


@frozen
class BackendPart:
    """A backend that was queried."""

    id: str
    host: bool
    """Whether it runs layers on the host."""
    firmware: bool
    """Whether it runs layers on boards."""


@frozen
class FinalLayerPart:
    """A layer of the network after the optimizer and the backends have rewritten it."""

    layer: str
    type: str
    backend: str
    device: str
    replaces: tuple[str, ...]
    """The layers that it replaced, if its backend inserted it."""
    label: str
    """The backend's name for it, if it is a pre-compiled object."""
    estimate: EstimatePart | None = None
    """What the compiler of a pre-compiled object expects; null for others, or if it states nothing."""


@frozen
class CrossingPart:
    """A tensor that passes from one backend to another on the host."""

    layer: str
    """The layer that the optimizer inserted for it."""
    tensor: str
    strategy: str
    """"copy", "export" or "fallback import"."""
    reason: str
    size_bytes: int
    alignment_bytes: int
    """The alignment that imported memory needs at both ends; 1 for a copy between the backends' own memories."""
    source: str
    """The backend that writes the tensor; empty for an input of the network."""
    source_factory: str
    """Empty for plain memory."""
    target: str
    target_factory: str
    memory: str = ""
    """The kinds of memory that the runtime allocates for it, such as "malloc and dma-buf"; empty if none."""


@frozen
class FinalPart:
    """The final assignment of layers to backends, on the host or in firmware."""

    face: str
    """"host" or "firmware"."""
    layers: tuple[FinalLayerPart, ...] = ()
    gone: tuple[str, ...] = ()
    """Layers of the given network that were fused, folded or deleted and have no replacement layer of a backend."""
    messages: tuple[str, ...] = ()
    """Messages about requests that were not met."""
    crossings: tuple[CrossingPart, ...] = ()
    """The tensors that pass from one backend to another; empty for firmware."""
    dma_bufs: str = ""
    """What the runtime's dma-bufs are on this machine, such as a stand-in; empty if no tensor lies in one."""
    problem: str = ""
    """The reason why the network cannot run there; empty if it can."""

    def section(self) -> Part:
        """Return the layers that finally run there."""
        where = "on the host" if self.face == "host" else "in firmware"
        title = where.capitalize()
        if self.problem:
            return Part(title, (Text(self.problem, f"it cannot run {where}", State.BAD),))
        layers = Table(
            f"{where}: what finally runs",
            (*numbers("#"), *names("layer"), "type", *names("run by"), "in place of"),
            [
                (
                    str(index),
                    layer.layer,
                    f"{layer.type} ({layer.label})" if layer.label else layer.type,
                    runner(layer.backend, layer.device),
                    joined(*layer.replaces),
                )
                for index, layer in enumerate(self.layers)
            ],
        )
        drawn = [Assigned(layer.layer, runner(layer.backend, layer.device)) for layer in self.layers]
        return Part(
            title,
            (
                layers,
                Picture("lanes", drawn),
                Table(
                    "on the host: what passes from one backend to another",
                    (*names("tensor"), "from and to", *names("strategy"), *numbers("bytes", "alignment"), "reason"),
                    [
                        (
                            each.tensor,
                            f"{each.source or 'the application'} -> {each.target}",
                            each.strategy,
                            each.size_bytes,
                            each.alignment_bytes,
                            each.reason,
                        )
                        for each in self.crossings
                    ],
                )
                if self.crossings
                else None,
                Text(self.dma_bufs, "dma-bufs of this machine") if self.dma_bufs else None,
                Text(joined(*self.gone), "fused, folded or deleted") if self.gone else None,
                *(Text(message, "note", State.WARN) for message in self.messages),
            ),
        )


@frozen
class DivisionPart:
    """The backend for each layer of the given network, and the assignment after the backends have rewritten it."""

    backends: tuple[BackendPart, ...]
    """The backends, in order of preference."""
    layers: tuple[TakerPart, ...]
    """The layers of the network as given."""
    finals: tuple[FinalPart, ...]
    """The final assignments for the host and for firmware."""

    def section(self, types: Mapping[str, str]) -> Part:
        """Return the backend of each layer, and why others did not get it; `types` has the types of the layers."""
        takers = Table(
            "backends: the network as given",
            (*numbers("#"), *names("layer"), "type", *names("taken by"), "refused by"),
            [
                (
                    str(index),
                    taker.layer,
                    types.get(taker.layer),
                    taker.runner,
                    "\n".join(f"{each.backend}: {each.reason}" for each in taker.refusals),
                )
                for index, taker in enumerate(self.layers)
            ],
        )
        faces = []
        for each in self.backends:
            count = sum(taker.backend == each.id for taker in self.layers)
            where = joined("host" if each.host else "", "firmware" if each.firmware else "", by=" and ") or "nothing"
            faces.append(Text(f"{each.id}: {count} layers, runs on {where}"))
        return Part("Division among backends", (takers, *faces, *(final.section() for final in self.finals)))


@frozen
class ScheduledPart:
    """One operator of the firmware, and the device calls around it."""

    index: int
    """Position in the order of execution."""
    layer: str
    backend: str
    device: str
    calls: tuple[str, ...]
    """The device calls in order, such as "npu0 open"; empty if no device is called."""
    beside: tuple[str, ...] = ()
    """The layers, begun before, that devices go on with while this one runs."""
    copies: tuple[str, ...] = ()
    """The tensors that it expects inside its scratch, but that the core copies to it or from it, with the reasons."""


@frozen
class DeviceCrossingPart:
    """A tensor of the firmware that the core or a device writes and another one of them reads."""

    tensor: str
    writer: str
    """The name of a device, or "the core", which also stands for the caller."""
    reader: str
    bytes: int
    became: str
    """"shared in place" or "copied"."""
    alignment: int
    """In bytes."""
    why: str
    """The reason why the crossing is no cheaper; empty if nothing is."""


@frozen
class KernelPart:
    """A kernel that was considered for a layer of the firmware."""

    kernel: str
    chosen: bool
    reason: str
    """Why it was chosen or not."""
    instructions: int | None
    """Estimate for one inference; null if the kernel cannot run the layer, or the backend states none."""
    weight_bytes: int | None
    scratch_bytes: int | None
    cycles: int | None = None
    """Planned for one inference; null as for `instructions`, or if the core has no table of its kernels' cycles."""
    milliseconds: float | None = None
    """These, at the board's clock."""

    @property
    def duration(self) -> str:
        """The milliseconds as text; "" if they are unknown."""
        return "" if self.milliseconds is None else digits_text(self.milliseconds, 4)


@frozen
class OverlapPart:
    """How far the chosen kernel's output may overlap an input."""

    input: str
    forward_bytes: int | None
    """Bytes by which the output must start below the input; null if it may not start below."""
    backward_bytes: int | None
    """Bytes by which the output must start above the input; null if it may not start above."""
    step_bytes: int
    """The difference must be a multiple of this."""

    @property
    def text(self) -> str:
        """The distances in words."""
        ways = (
            f"{distance:,} {way}"
            for distance, way in ((self.forward_bytes, "below"), (self.backward_bytes, "above"))
            if distance is not None
        )
        step = f", in steps of {self.step_bytes:,}" if self.step_bytes > 1 else ""
        return joined(*ways, by=" or ") + step


@frozen
class LayerKernelsPart:
    """The kernels considered for a layer of the firmware, in the order of execution."""

    layer: str
    type: str
    backend: str
    kernels: tuple[KernelPart, ...]
    overlaps: tuple[OverlapPart, ...]
    bound: int | None = None
    """Instructions that the best kernels known take at least for such a layer; null if none are known."""
    advice: str = ""
    """If the estimate is much more than `bound`: what would help, or why nothing does."""


@frozen
class ClassPart:
    """What becomes of a network as a C++ class over the Arm Compute Library."""

    target: str
    acl_version: str
    float16: bool
    layers: tuple[LayerUse, ...]
    outputs: tuple[str, ...]
    """Why outputs of the network cannot be outputs of the class; usually empty."""

    def section(self, types: Mapping[str, str]) -> Part:
        """Return the functions of the library for each layer, or why there are none; `types` has the layers' types."""
        table = Table(
            f"{self.target}: Arm Compute Library {self.acl_version} or later{', in float16' if self.float16 else ''}",
            (*numbers("#"), *names("layer"), "type", *names("functions"), "not possible"),
            [
                (str(index), layer.layer, types.get(layer.layer), "\n".join(layer.functions), layer.reason)
                for index, layer in enumerate(self.layers)
            ],
        )
        possible = sum(not layer.reason for layer in self.layers)
        text = Text(f"{possible} of {len(self.layers)} layers are possible")
        return Part("C++ class", (table, text, *(Text(problem, "not possible") for problem in self.outputs)))
