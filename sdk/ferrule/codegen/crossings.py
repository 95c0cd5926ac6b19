# SPDX-License-Identifier: Apache-2.0
"""Describes the tensors that pass between the core and devices: the way that was chosen, and the reason for it.

Best is a tensor that both ends use in place, in the workspace's memory. Next is another memory that both reach. Behind
a data cache, either costs cache maintenance. A copy is the last resort: the ends reach no memory in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ferrule._frozen import frozen
from ferrule.codegen.cache_code import upkeep
from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.lowered import LoweredLayer
from ferrule.codegen.plan import memory_of
from ferrule.codegen.schedule import Call
from ferrule.codegen.storage import StoragePlan
from ferrule.graph import LayerType
from ferrule.memory import Untied

THE_CORE = "the core"


@frozen
class Crossing:
    """A tensor that one of the core and the devices writes and another one reads."""

    tensor: str
    writer: str
    """The name of a device, or "the core", which also stands for the caller of the executor."""
    reader: str
    """Likewise."""
    size_bytes: int
    copied: bool
    """Whether a MEM_COPY moves it, or the core around the layer; otherwise both ends use it in place."""
    alignment: int
    """Of its place in the core's memory or, if it is copied, in the device's memory; in bytes."""
    why: str
    """The reason why the crossing is no cheaper; empty for a tensor in place without any cost."""

    @property
    def became(self) -> str:
        """What the crossing became, in words."""
        return "copied" if self.copied else "shared in place"


def crossings(storage: StoragePlan) -> tuple[Crossing, ...]:
    """Return the crossings in the order in which the layers run, once for each tensor and pair of ends."""
    found: dict[tuple[str, str, str], Crossing] = {}
    for crossing in _Crossings(storage).each():
        if crossing.writer != crossing.reader:
            found.setdefault((crossing.tensor, crossing.writer, crossing.reader), crossing)
    return tuple(found.values())


class _Crossings:
    """Finds the crossings of a planned graph."""

    def __init__(self, storage: StoragePlan) -> None:
        lowered = self._lowered = storage.lowered
        self._storage = storage
        self._writers = {name: _runner(item) for item in lowered.layers for name in item.layer.outputs}
        for item in lowered.layers:
            copied = (each.tie.buffer for each in storage.untied_of(item.layer.name) if _writes(item, each))
            self._writers.update(dict.fromkeys(copied, THE_CORE))

    def each(self) -> Iterator[Crossing]:
        graph, storage = self._lowered.graph, self._storage
        for item, lines in zip(self._lowered.layers, upkeep(storage), strict=True):
            if item.use is not None and item.is_copy:
                yield self._copied(item, item.use)
            elif item.layer.type is LayerType.MEM_COPY:
                yield self._copied_by_core(item)
            elif not storage.is_view(item):
                untied = storage.untied_of(item.layer.name)
                copied = {each.tie.buffer: self._to_scratch(item, each) for each in untied}
                yield from copied.values()
                for name in item.layer.present_inputs:
                    if not graph.tensor(name).is_constant and name not in {*self._lowered.memories, *copied}:
                        yield self._shared(name, _runner(item), cleaned=name in lines.clean)
        for info in graph.results:
            if not graph.tensor(info.name).is_constant:
                yield self._shared(info.name, THE_CORE)

    def _copied(self, item: LoweredLayer, use: DeviceUse) -> Crossing:
        device = use.device.name
        return self._moved(
            item.layer.present_inputs[0],
            device,
            inwards=item.call is Call.COPY_TO,
            alignment=use.driver.alignment,
            why=f"{device} uses its own memory of {use.driver.memory_bytes} B only (memory_bytes of its driver)",
        )

    def _to_scratch(self, item: LoweredLayer, untied: Untied) -> Crossing:
        return self._moved(
            untied.tie.buffer,
            _runner(item),
            inwards=not _writes(item, untied),
            alignment=item.op.scratch_alignment,
            why=f"{item.device} expects it inside its scratch, where it cannot lie: {untied.reason}",
        )

    def _moved(self, tensor: str, device: str, *, inwards: bool, alignment: int, why: str) -> Crossing:
        """Return the crossing of a tensor that is copied between the core and a device."""
        return Crossing(
            tensor=tensor,
            writer=THE_CORE if inwards else device,
            reader=device if inwards else THE_CORE,
            size_bytes=self._lowered.graph.info(tensor).size_bytes,
            copied=True,
            alignment=alignment,
            why=why,
        )

    def _copied_by_core(self, item: LoweredLayer) -> Crossing:
        source, target = item.layer.present_inputs[0], item.layer.outputs[0]
        writer = self._writers.get(self._storage.root(source), THE_CORE)
        other = "another device that uses the tensor" if writer == THE_CORE else writer
        return Crossing(
            tensor=source,
            writer=writer,
            reader=item.device,
            size_bytes=self._lowered.graph.info(source).size_bytes,
            copied=True,
            alignment=self._storage.device_alignment(target),
            why=f"{item.device} uses {self._memory(target)}, {other} does not reach it",
        )

    def _memory(self, tensor: str) -> str:
        region = self._storage.region(tensor)
        return "the workspace's memory" if region is self._storage.regions[0] else f"memory {memory_of(region)}"

    def _shared(self, tensor: str, reader: str, *, cleaned: bool = False) -> Crossing:
        writer = self._writers.get(self._storage.root(tensor), THE_CORE)
        region = self._storage.region(tensor)
        why = []
        if region is not self._storage.regions[0]:
            why.append(f"in memory {memory_of(region)}: a device that uses it does not reach the workspace's memory")
        line = region.line_bytes
        if line:
            upkeep = ", cleaned before the device reads them" if cleaned else ""
            if reader == THE_CORE:
                upkeep = ", invalidated before the core reads them"
            why.append(f"the core caches this memory: the tensor fills lines of {line} B{upkeep}")
        return Crossing(
            tensor=tensor,
            writer=writer,
            reader=reader,
            size_bytes=self._lowered.graph.info(tensor).size_bytes,
            copied=False,
            alignment=math.lcm(self._storage.device_alignment(tensor), max(line, 1)),
            why="; ".join(why),
        )


def _writes(item: LoweredLayer, untied: Untied) -> bool:
    """Whether a layer writes the tensor of a tie."""
    return untied.tie.buffer in item.layer.outputs


def _runner(item: LoweredLayer) -> str:
    """Return the device that uses a layer's tensors itself, or the core, which also does the copies."""
    return item.use.device.name if item.use is not None and item.call is Call.RUN else THE_CORE
