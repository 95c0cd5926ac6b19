# SPDX-License-Identifier: Apache-2.0
"""Finds the devices that run layers of a model, and the memories that hold its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ferrule._frozen import frozen
from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import DeviceDriver, DeviceTarget
from ferrule.codegen.names import Names
from ferrule.codegen.plan import Plan
from ferrule.errors import FerruleError
from ferrule.graph import Graph, Layer, LayerType


@frozen(eq=False)
class DeviceUse:
    """A device that runs layers, with its names in the generated C."""

    name: str
    """Name of its member in the devices struct: the device's name, changed if C or the generated code reserves it."""
    index: int
    """The device's number in the executor's reports."""
    backend: BackendId
    device: Device
    driver: DeviceDriver
    pool: tuple[str, ...] = ()
    """The names of all members of its pool, of which the first one has the layers; empty without a pool."""

    @property
    def lead(self) -> int:
        """How many operators before its first one the device is activated."""
        own = self.device.activation_lead
        return self.driver.activation_lead if own is None else own

    @property
    def has_memory(self) -> bool:
        """Whether the device keeps its tensors in its own memory."""
        return self.driver.memory_bytes > 0


def used_devices(order: Sequence[str], plan: Plan) -> tuple[dict[str, DeviceUse], tuple[DeviceUse, ...]]:
    """Return, by layer in the given order, the device that runs it through the device API, and all devices by number.

    Core layers are left out. The numbers of a pool's members follow each other.

    Raises:
        FerruleError: the binding of a device is not valid, or the members of a pool differ.
    """
    names = Names()
    known: dict[str, DeviceUse] = {}
    found = {}
    faces: dict[int, DeviceTarget | None] = {}
    """By identity, since few faces have many layers and the test of a protocol is slow; None without a driver."""
    for layer in order:
        whole, device = plan.firmware[layer], plan.targets[layer].device
        if id(whole) not in faces:
            faces[id(whole)] = whole if isinstance(whole, DeviceTarget) else None
        face = faces[id(whole)]
        if face is None:
            continue
        if device.name not in known:
            others = (each for each in plan.pool if each.backend == device.backend and each.name != device.name)
            members = (device, *(others if device.pool else ()))
            for use in _members(members, face, names, len(known)):
                known[use.device.name] = use
        found[layer] = known[device.name]
    return found, tuple(known.values())


def _members(devices: Sequence[Device], face: DeviceTarget, names: Names, first: int) -> Iterator[DeviceUse]:
    """Yield the uses of a device, or of the members of a pool; FerruleError if these differ."""
    taken = [names.take(device.name) for device in devices]
    drivers = [face.driver(device) for device in devices]
    for index, (name, device, driver) in enumerate(zip(taken, devices, drivers, strict=True)):
        _check_alike(devices[0], drivers[0], device, driver)
        yield DeviceUse(
            name=name,
            index=first + index,
            backend=device.backend,
            device=device,
            driver=driver,
            pool=tuple(taken) if device.pool else (),
        )


def _check_alike(first: Device, driver: DeviceDriver, other: Device, others: DeviceDriver) -> None:
    """Raise FerruleError unless a layer of the first device can run on the other one."""
    same = ("driver", "memory_bytes", "alignment", "tensor_alignment", "depth", "copies_beside")
    values = {name: (getattr(driver, name), getattr(others, name)) for name in same}
    values["regions"] = first.regions, other.regions
    for name, (left, right) in values.items():
        if left != right:
            raise FerruleError(
                f"devices '{first.name}' and '{other.name}' are in one pool, expected the same {name}, "
                f"found {left} and {right}",
                hint="a pool has devices of one kind; leave `pool` out for the others",
            )


def tensor_memories(graph: Graph, uses: Mapping[str, DeviceUse]) -> dict[str, DeviceUse]:
    """Return, by tensor, the device whose own memory holds it; all other tensors are in the core's memory.

    A tensor is in the memory that its writer uses. A MEM_COPY layer writes to the other side: it copies from its
    device's memory to the core's, or from the core's to its device's.

    Raises:
        FerruleError: a layer reads a tensor in a memory that it cannot reach, or an output is in a device's memory.
    """
    found: dict[str, DeviceUse] = {}
    for layer in graph.layers:
        use = uses.get(layer.name)
        if use is None or not use.has_memory:
            continue
        if layer.type is LayerType.MEM_COPY and found.get(layer.present_inputs[0]) is use:
            continue
        found |= dict.fromkeys(layer.outputs, use)
    for layer in graph.layers:
        _check_reach(graph, layer, uses.get(layer.name), found)
    for info in graph.results:
        if info.name in found:
            raise FerruleError(
                f"output '{info.name}' of the model lies in the memory of device {found[info.name].device.name}, "
                "expected a MEM_COPY layer behind it"
            )
    return found


def _check_reach(graph: Graph, layer: Layer, use: DeviceUse | None, memories: Mapping[str, DeviceUse]) -> None:
    own = use if use is not None and use.has_memory else None
    if layer.type is LayerType.MEM_COPY and own is not None:
        reached: tuple[DeviceUse | None, ...] = (own, None)
    else:
        reached = (own,)
    for name in layer.present_inputs:
        if not graph.tensor(name).is_constant and memories.get(name) not in reached:
            home = memories.get(name)
            where = "the core's memory" if home is None else f"the memory of device {home.device.name}"
            raise FerruleError(
                f"layer '{layer.name}' reads tensor '{name}' in {where}, which it does not reach, "
                "expected a MEM_COPY layer between"
            )
