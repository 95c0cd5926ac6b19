# SPDX-License-Identifier: Apache-2.0
"""Plans and cache maintenance, replayed on bytes with a data cache that loads and writes back lines at any time."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ferrule.backends import BackendId, Device
from ferrule.backends.cpu_acc.backend import CpuAccTarget
from ferrule.backends.firmware import DeviceDriver, FirmwareTarget, LoweredOp, LoweringContext, PlacedTensor
from ferrule.backends.target import Face, Target
from ferrule.codegen.cache_code import Upkeep, upkeep
from ferrule.codegen.lowered import LoweredGraph, LoweredLayer, lower
from ferrule.codegen.overlap import overlapped
from ferrule.codegen.plan import Plan
from ferrule.codegen.schedule import Call
from ferrule.codegen.storage import StoragePlan, plan_storage
from ferrule.dom import Call as CallExpression
from ferrule.dom import Identifier
from ferrule.graph import DataType
from ferrule.memory import measure_order, scratch_name
from ferrule.testing.backends.random_networks import random_network

LINE = 32
NETWORKS, RUNS = 16, 6
BACKEND = BackendId("Dma")


class DmaTarget:
    """Runs any layer on a device with DMA and a scratch that fills no line."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        del context
        run, begin = (CallExpression(Identifier(name), ()) for name in ("dma", "begin_dma"))
        return LoweredOp(kernel="dma", status=run, start=begin, cycles=3000, scratch_bytes=40)

    def driver(self, device: Device) -> DeviceDriver:
        return DeviceDriver(
            driver="d",
            header="d.h",
            context="d",
            tensor_alignment={"a": 8, "b": 64}.get(device.name, 1),
            depth={"a": 2, "b": 1}.get(device.name, 0),
        )


class PlacingTarget(DmaTarget):
    """Runs layers as programs that find most of their tensors inside their scratch, some of them not at a line."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        dice = random.Random(zlib.crc32(context.layer.name.encode()))
        layer, graph = context.layer, context.graph
        placed: list[PlacedTensor] = []
        most = 0
        for names in (layer.present_inputs, layer.outputs):
            end = 0 if dice.random() < 0.5 else most
            for name in dict.fromkeys(names):
                if graph.tensor(name).is_constant or dice.random() < 0.1:
                    continue
                grain = dice.choice((LINE, LINE, LINE, 16))
                start = -(-end // grain) * grain
                end = start + graph.info(name).size_bytes
                most = max(most, end)
                placed.append(PlacedTensor(tensor=name, offset=start))
        op = super().lower(context)
        return replace(op, scratch_bytes=most + 40, scratch_alignment=16, placed=tuple(placed))


@cache
def planned(seed: int, *, placing: bool = False) -> StoragePlan:
    """Return a random network that is divided at random between the core and two devices, which work beside it."""
    dice = random.Random(seed)
    target = PlacingTarget() if placing else DmaTarget()
    network = random_network(seed, layers=dice.randint(3, 10), dtype=DataType.INT8)
    runners = {layer.name: dice.choice(("core", "a", "b")) for layer in network.layers}
    firmware: dict[str, FirmwareTarget] = {
        name: CpuAccTarget() if runner == "core" else target for name, runner in runners.items()
    }
    targets = {
        name: Target(face=Face.FIRMWARE, device=Device(name=runner, backend=BACKEND))
        for name, runner in runners.items()
    }
    plan = Plan(
        graph=network,
        firmware=firmware,
        targets=targets,
        workspace_bytes=1 << 20,
        line_bytes=LINE,
        masters=frozenset({"cpu", "a", "b", "core"}),
    )
    lowered = lower(plan, measure_order(network, [layer.name for layer in network.layers]))
    return overlapped(plan_storage(lowered))


class Core:
    """A memory and a data cache in front of it; each byte holds the number of the buffer last written to it."""

    def __init__(self, size_bytes: int, dice: random.Random) -> None:
        lines = -(-size_bytes // LINE)
        self.memory = np.full((lines, LINE), -1)
        self.lines = np.full((lines, LINE), -1)
        self.states = np.full(lines, "absent", dtype="U6")
        self._dice = dice
        self._activity = dice.choice((0.1, 0.5))

    def anything(self) -> None:
        """Let the cache load, drop and write back any lines, which it may do at any time."""
        for line in range(len(self.states)):
            if self._dice.random() < self._activity:
                if self.states[line] == "absent":
                    self._load(line)
                else:
                    self.maintain(range(line * LINE, line * LINE + 1), drop=self._dice.random() < 0.5)

    def maintain(self, place: range, *, drop: bool) -> None:
        for line in range(place.start // LINE, (place.stop - 1) // LINE + 1):
            if self.states[line] == "dirty":
                self.memory[line] = self.lines[line]
                self.states[line] = "clean"
            if drop:
                self.states[line] = "absent"

    def write(self, place: range, tag: int) -> None:
        for byte in place:
            line = byte // LINE
            if self.states[line] == "absent":
                self._load(line)
            self.lines[line, byte % LINE] = tag
            self.states[line] = "dirty"

    def read(self, place: range) -> set[int]:
        for byte in place:
            if self.states[byte // LINE] == "absent":
                self._load(byte // LINE)
        return {int(self.lines[byte // LINE, byte % LINE]) for byte in place}

    def transfer(self, place: range, tag: int) -> None:
        """Write as a device does, which does not see the cache."""
        self.memory.reshape(-1)[place.start : place.stop] = tag

    def fetch(self, place: range) -> set[int]:
        return {int(tag) for tag in self.memory.reshape(-1)[place.start : place.stop]}

    def _load(self, line: int) -> None:
        self.lines[line] = self.memory[line]
        self.states[line] = "clean"


def faults(storage: StoragePlan, steps: tuple[Upkeep, ...], seed: int) -> Iterator[str]:
    """Yield the tensors that are not read as they were written, with the layer."""
    lowered, graph = storage.lowered, storage.lowered.graph
    core = Core(storage.plan.peak_bytes, random.Random(seed))
    tags: dict[str, int] = {}

    def place(name: str) -> range:
        offset = storage.offset(name)
        scratch = {scratch_name(item.layer.name): item.op.scratch_bytes for item in lowered.layers}
        return range(offset, offset + (scratch[name] if name in scratch else graph.info(name).size_bytes))

    def new(name: str) -> int:
        tags[storage.root(name)] = len(tags) + 1
        return len(tags)

    def work(item: LoweredLayer) -> Iterator[str]:
        """Do the work of a layer: at any time between its start and its end, if a device goes on with it."""
        read, write = (core.fetch, core.transfer) if _on_device(item) else (core.read, core.write)
        inside = places_inside(item)
        for name in item.layer.present_inputs:
            if graph.tensor(name).is_constant:
                continue
            if read(inside.get(name, place(name))) != {tags[storage.root(name)]}:
                yield f"{name} in {item.layer.name}"
        if item.op.scratch_bytes:
            write(place(scratch_name(item.layer.name)), -2)
        for name in item.layer.outputs:
            write(inside.get(name, place(name)), new(name))

    def places_inside(item: LoweredLayer) -> dict[str, range]:
        """Return the places in scratch of the tensors that the core copies."""
        ties = storage.copies(item.layer.name)
        starts = {tie.buffer: storage.offset(tie.scratch) + tie.offset for tie in ties}
        return {name: range(start, start + graph.info(name).size_bytes) for name, start in starts.items()}

    def copied(item: LoweredLayer, names: Sequence[str], *, inwards: bool) -> Iterator[str]:
        """Copy tensors to scratch or from there, as the executor does."""
        for name, inside in places_inside(item).items():
            if name in names:
                core.anything()
                if not inwards:
                    core.maintain(inside, drop=True)
                source, target = (place(name), inside) if inwards else (inside, place(name))
                if core.read(source) != {tags[storage.root(name)]}:
                    yield f"{name} copied for {item.layer.name}"
                core.write(target, tags[storage.root(name)])
                if inwards:
                    core.maintain(inside, drop=False)

    dice = random.Random(seed)
    going: list[tuple[int, LoweredLayer, Upkeep]] = []
    """Layers that were begun, with their ends."""
    idle: set[str] = set()
    """Those of them whose work is done."""

    def proceed(device: str, until: str = "") -> Iterator[str]:
        """Let a device do its work in order, up to a layer or to any."""
        for _, item, _ in going:
            if item.device == device and item.layer.name not in idle:
                if not until and dice.random() < 0.5:
                    return
                idle.add(item.layer.name)
                yield from work(item)
            if item.layer.name == until:
                return

    for info in graph.inputs:
        core.write(place(info.name), new(info.name))
    for index, (item, lines) in enumerate(zip(lowered.layers, steps, strict=True)):
        if item.layer.outputs[0] not in storage.views:
            yield from copied(item, item.layer.present_inputs, inwards=True)
            core.anything()
            for name in lines.clean:
                core.maintain(place(name), drop=False)
            for name in lines.claim:
                core.maintain(place(name), drop=True)
            core.anything()
            if item.layer.name in lowered.ends:
                going.append((lowered.ends[item.layer.name], item, lines))
            else:
                yield from work(item)
            for device in "ab":
                yield from proceed(device)
            core.anything()
            if item.layer.name not in lowered.ends:
                for name in lines.invalidate:
                    core.maintain(place(name), drop=True)
                yield from copied(item, item.layer.outputs, inwards=False)
        for end, ended, its in tuple(going):
            if end == index:
                yield from proceed(ended.device, ended.layer.name)
                core.anything()
                for name in its.invalidate:
                    core.maintain(place(name), drop=True)
        going = [each for each in going if each[0] > index]
    for info in graph.outputs:
        core.anything()
        if not graph.tensor(info.name).is_constant and core.read(place(info.name)) != {tags[storage.root(info.name)]}:
            yield f"{info.name} at the end"


def _on_device(item: LoweredLayer) -> bool:
    return item.use is not None and item.call is Call.RUN


def test_devices_work_beside_the_core_in_some_networks() -> None:
    assert sum(bool(planned(seed).lowered.ends) for seed in range(NETWORKS)) >= 5


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_every_read_sees_what_was_written(seed: int) -> None:
    storage = planned(seed)
    for activity in range(RUNS):
        assert list(faults(storage, upkeep(storage), activity)) == []


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_so_does_every_read_of_a_program(seed: int) -> None:
    storage = planned(seed, placing=True)
    for activity in range(RUNS):
        assert list(faults(storage, upkeep(storage), activity)) == []


def test_programs_have_tensors_inside_scratch_and_copied_ones() -> None:
    found = [planned(seed, placing=True) for seed in range(NETWORKS)]
    assert sum(len(storage.ties) for storage in found) >= 30
    assert sum(len(storage.untied) for storage in found) >= 20
    assert sum(len(storage.lowered.ends) for storage in found) >= 5


def noticed(storage_of: Callable[[LoweredGraph], StoragePlan], damage: Callable[[Upkeep], Upkeep]) -> int:
    """Return the number of networks whose damaged plan or maintenance some run notices."""
    found = 0
    for seed in range(NETWORKS):
        storage = storage_of(planned(seed).lowered)
        steps = tuple(map(damage, upkeep(storage)))
        found += any(any(faults(storage, steps, activity)) for activity in range(RUNS))
    return found


@pytest.mark.parametrize(
    "damage",
    [
        lambda step: replace(step, clean=()),
        lambda step: replace(step, claim=()),
        lambda step: replace(step, invalidate=()),
        lambda step: replace(step, clean=step.clean[1:]),
        lambda step: replace(step, claim=step.claim[1:]),
    ],
    ids=["no clean", "no claim", "no invalidate", "one not cleaned", "output not claimed"],
)
def test_the_replay_notices_missing_maintenance(damage: Callable[[Upkeep], Upkeep]) -> None:
    assert noticed(plan_storage, damage) >= 2


def test_the_replay_notices_a_shared_line() -> None:
    """The same networks, planned for a quarter of the line."""

    def narrow(lowered: LoweredGraph) -> StoragePlan:
        return plan_storage(replace(lowered, plan=replace(lowered.plan, line_bytes=LINE // 4)))

    assert noticed(narrow, lambda step: step) >= 1
