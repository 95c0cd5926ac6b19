# SPDX-License-Identifier: Apache-2.0
"""Creates the models of a firmware's devices for an emulated board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ferrule.backends import Device
from ferrule.backends.firmware import Wire
from ferrule.backends.registry import BackendRegistry
from ferrule.boards import Board
from ferrule.codegen import Artifact, DeviceUse, Program
from ferrule.codegen.executor import default_arena
from ferrule.devices import DeviceModel, Fault, FaultInjector, Range, SerialModel
from ferrule.devices.hosting import created, unattached
from ferrule.emulation.engine import AttachedDevice, AttachedWire
from ferrule.errors import FerruleError, unknown_name
from ferrule.firmware import Group, Image, place_devices

_SHARED = {Group.WORKSPACE: True, Group.WEIGHTS: False, Group.CONSTANTS: False}
"""The groups of sections that every device may access, and whether it may write to them."""


def attached_devices(
    artifact: Artifact, image: Image, faults: Mapping[str, Fault] | None = None, *, program: Program | None = None
) -> tuple[AttachedDevice, ...]:
    """Return a new model for each device with registers on the bus, and the memory that it may access.

    That memory is the network's workspace and constants, and what the driver states of its own. A device in `faults`
    is wrapped in an injector, which does nothing until `inject` is called. In a firmware with several models, `program`
    has all of them, and `artifact` is the one that will run.
    """
    models = Program(artifacts=(artifact,)) if program is None else program
    return tuple(
        AttachedDevice(
            name=use.device.name,
            model=_model(use, faults or {}),
            address=use.driver.base,
            interrupt=use.driver.interrupt,
            ranges=(*_shared(image), *_arenas(models, image), *_reach(use, image)),
            operators=frozenset(
                index for index, record in enumerate(artifact.operators) if record.device == use.device.name
            ),
        )
        for use in models.devices
        if use.driver.model is not None and use.driver.base is not None
    )


def attached_wires(program: Program | Artifact) -> tuple[AttachedWire, ...]:
    """Return a new model for each device behind a serial line whose driver provides one."""
    return tuple(filter(None, (_wire(use.device.name, use.driver.wire, use.index) for use in program.devices)))


def _wire(name: str, wire: Wire | None, index: int | None) -> AttachedWire | None:
    if wire is None or wire.model is None or wire.uart is None:
        return None
    model = created(partial(wire.model, index), SerialModel, name=name)  # type: ignore[type-abstract]
    return AttachedWire(name=name, model=model, uart=wire.uart)


def own_devices(
    devices: Sequence[Device], board: Board, registry: BackendRegistry, *, faulty: bool = False
) -> tuple[tuple[AttachedDevice, ...], tuple[AttachedWire, ...]]:
    """Return new models for the devices of a user's own firmware, on the bus and behind UARTs, by their bindings.

    A device on the bus may access the whole memory; if `faulty`, it can be given a fault by `inject`.

    Raises:
        FerruleError: as `place_devices`, or a backend has no model of the device.
    """
    attached: list[AttachedDevice] = []
    wires: list[AttachedWire] = []
    for device, driver in place_devices(devices, board, registry):
        wire = _wire(device.name, driver.wire, None)
        if wire is not None:
            wires.append(wire)
        elif driver.model is not None and driver.base is not None:
            model = created(driver.model, DeviceModel, name=device.name)  # type: ignore[type-abstract]
            attached.append(
                AttachedDevice(
                    name=device.name,
                    model=FaultInjector(model) if faulty else model,
                    address=driver.base,
                    interrupt=driver.interrupt,
                )
            )
        else:
            raise FerruleError(
                f"device '{device.name}': {device.backend} has no model of it for an emulated board",
                hint="a model is what the driver of its firmware face states: docs/accelerators.md",
            )
    return tuple(attached), tuple(wires)


def check_faults(program: Program | Artifact, faults: Mapping[str, Fault]) -> None:
    """Raise FerruleError if `faults` names a device that has no model on the bus."""
    known = [use.device.name for use in program.devices if use.driver.model is not None and use.driver.base is not None]
    for name in faults:
        if name not in known:
            raise unknown_name(
                "device", name, known, where="with a model on the bus, into which a fault can be injected"
            )


def _model(use: DeviceUse, faults: Mapping[str, Fault]) -> DeviceModel:
    assert use.driver.model is not None
    model = created(use.driver.model, DeviceModel, name=use.device.name)  # type: ignore[type-abstract]
    size_bytes = unattached(model, use.device.name).size_bytes
    if size_bytes > use.driver.window_bytes:
        raise FerruleError(
            f"device {use.device.name}: its model has {size_bytes:,} B of registers, "
            f"but its driver states {use.driver.window_bytes:,} B",
            hint=f"set window_bytes of the DeviceDriver that backend {use.device.backend} returns",
        )
    return FaultInjector(model) if use.device.name in faults else model


def statistics(devices: Sequence[AttachedDevice]) -> dict[str, dict[str, int | float]]:
    """Return the counts of each device's model; DeviceFaultError if a model breaks its contract."""
    return {device.name: unattached(device.model, device.name).statistics() for device in devices}


def failures(devices: Sequence[AttachedDevice]) -> dict[str, str]:
    """Return, by device, why its model refused its last work; DeviceFaultError if a model breaks its contract."""
    found = {device.name: unattached(device.model, device.name).complaint() for device in devices}
    return {name: text for name, text in found.items() if text}


def inject(devices: Sequence[AttachedDevice], faults: Mapping[str, Fault]) -> None:
    """Activate the faults; accesses and transfers are numbered from here."""
    for device in devices:
        if isinstance(device.model, FaultInjector):
            device.model.inject(faults.get(device.name))


def _shared(image: Image) -> Iterator[Range]:
    for section in image.sections:
        if section.group in _SHARED and section.size_bytes:
            yield Range(
                name=str(section.group),
                address=section.address,
                size_bytes=section.size_bytes,
                writable=_SHARED[section.group],
            )


def _arenas(program: Program, image: Image) -> Iterator[Range]:
    """Yield the workspace of a firmware whose linker script has no section for it, such as Zephyr's."""
    if image.groups[Group.WORKSPACE]:
        return
    names = {
        default_arena(artifact.symbol, artifact.arena, arena)
        for artifact in program.artifacts
        for arena in artifact.storage.blocks
    }
    for artifact in program.artifacts:
        places = tuple(f"ferrule_{artifact.symbol}_default_{kind}_" for kind in ("input", "output"))
        names |= {symbol.name for symbol in image.symbols if artifact.arena and symbol.name.startswith(places)}
    for name in sorted(names):
        for found in _context(image, name):
            yield replace(found, name=str(Group.WORKSPACE))


def _reach(use: DeviceUse, image: Image) -> Iterator[Range]:
    """Yield the memory of its driver that a device may access, as far as the firmware has it."""
    for part in use.driver.reach:
        symbol = f"{use.name}_{part.storage}"
        for whole in _context(image, symbol):
            size_bytes = part.size_bytes or whole.size_bytes - part.offset_bytes
            if part.offset_bytes + size_bytes > whole.size_bytes:
                raise FerruleError(
                    f"device {use.device.name}: its driver states {part.size_bytes} B of {part.name} at offset "
                    f"{part.offset_bytes} of {symbol}, which has {whole.size_bytes} B",
                    hint=f"set reach of the DeviceDriver that backend {use.device.backend} returns",
                )
            yield Range(
                name=f"{symbol} ({part.name})",
                address=whole.address + part.offset_bytes,
                size_bytes=size_bytes,
                writable=part.writable,
            )


def _context(image: Image, name: str) -> Iterator[Range]:
    for symbol in image.symbols:
        if symbol.name == name and symbol.size_bytes:
            yield Range(name=name, address=symbol.address, size_bytes=symbol.size_bytes)
