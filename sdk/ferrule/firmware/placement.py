# SPDX-License-Identifier: Apache-2.0
"""Places a network's devices on a board and generates the network's C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ferrule import codegen
from ferrule.backends import Backend, BackendId, Device
from ferrule.backends.firmware import DeviceDriver, DeviceTarget, FirmwareTarget, PluggableTarget, Socket, WiredTarget
from ferrule.backends.guarded import guarded
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.target import AddressRange, Memory, MemoryKind
from ferrule.boards import Board
from ferrule.codegen import CORE
from ferrule.errors import FerruleError, UnsupportedError, unknown_name
from ferrule.firmware.job import SHARED, Job, divide_all
from ferrule.firmware.linker import roomy_memories
from ferrule.firmware.platforms import DEFAULT_PLATFORM
from ferrule.firmware.wires import spare_uarts
from ferrule.interface import name_of, spelled
from ferrule.memory import ArenaOverflowError, Region
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork

Faces = Mapping[BackendId, FirmwareTarget]
ON_HOSTS = ("zephyr",)
"""The platforms whose projects also run on a host, where devices with registers or behind UARTs are in software."""
_SOFT = BackendId("SoftNpu")
_SOFT_BYTES = 1 << 24
"""Memory of each device in software: a host has enough."""


def emit(network: Network, job: Job | None = None, *, limited: bool = True) -> codegen.Artifact:
    """Generate a network's C for the job's board; raises as `emit_program` does, see there for `limited`."""
    return emit_program([network], job, limited=limited).artifacts[0]


def emit_program(networks: Sequence[Network], job: Job | None = None, *, limited: bool = True) -> codegen.Program:
    """Generate the C of one or several networks for one firmware; raises as `divide_all` and `emit_together` do.

    `emit_together` describes `limited`.
    """
    wanted = job or Job()
    wanted = replace(wanted, board=wanted.load_board())
    return emit_together(divide_all(networks, wanted), wanted, networks, limited=limited)


def emit_together(
    optimized: Sequence[OptimizedNetwork], job: Job, networks: Sequence[Network], *, limited: bool = True
) -> codegen.Program:
    """Generate the C of divided networks for one firmware, in which a device has the same place for all of them.

    `networks` are the networks before they were divided, of which the firmware carries digests. Without `limited`,
    memories of the board that are too small are taken to be large.

    Raises:
        ArenaOverflowError: the tensors of a network do not fit the board's workspace memory.
        FerruleError: two networks have the same C identifier, a device cannot access the memory that it needs, or the
            board has no free place for it.
    """
    board = job.load_board()
    registry = job.backend_source()
    backends = dict.fromkeys(name for each in optimized for name in each.backends)
    firmware = {name: _face(guarded(registry.create(name))) for name in backends}
    used = list({device.name: device for each in optimized for device in each.devices}.values())
    devices = _placed(used, firmware, board)
    arena = ""
    if job.arena == SHARED:
        if len(networks) == 1:
            raise FerruleError("one model has no arena to share", hint="leave out the option, or give several models")
        arena = codegen.arena_name(codegen.program_symbol([codegen.identifier(each.name) for each in networks]))
    made = codegen.Program(
        artifacts=tuple(
            _emitted(each, network, firmware, devices, job, arena, limited=limited)
            for each, network in zip(optimized, networks, strict=True)
        )
    )
    absent = [use.device for use in made.devices if use.driver.base is not None or use.driver.wire is not None]
    if job.platform not in ON_HOSTS or not absent:
        return made
    try:
        return replace(made, in_software=emit_program(networks, _in_software(job, absent)))
    except FerruleError as error:
        return replace(made, no_software=str(error))


def _in_software(job: Job, absent: Sequence[Device]) -> Job:
    """Return the job with devices in software, of the same names, in place of those that a host lacks."""
    board = job.load_board()
    names, backends = {device.name for device in absent}, {device.backend for device in absent}
    binding: Mapping[str, str | int] = {"memory_bytes": _SOFT_BYTES}
    soft = [replace(each, backend=_SOFT, binding=binding, regions=(), activation_lead=None) for each in absent]
    others = [each for each in job.devices if each.name not in names and each.backend not in backends]

    def renamed(choice: str) -> str:
        backend, slash, device = choice.partition("/")
        return f"{_SOFT if backend in backends else backend}{slash}{device}"

    return replace(
        job,
        board=replace(board, memories=roomy_memories(board)),
        platform=DEFAULT_PLATFORM,
        backends=tuple(dict.fromkeys((*map(renamed, job.backends), "CpuAcc"))),
        devices=(*soft, *others),
        hints={layer: renamed(choice) for layer, choice in job.hints.items()},
        model_options={name: options for name, options in job.model_options.items() if name not in backends},
        fallback_transfers={name: how for name, how in job.fallback_transfers.items() if name not in backends},
    )


def place_devices(
    devices: Sequence[Device], board: Board, registry: BackendRegistry
) -> Iterator[tuple[Device, DeviceDriver]]:
    """Yield devices with their places on a board, and their drivers, for a firmware that Ferrule has not generated.

    Raises:
        FerruleError: a device's backend does not exist or has no devices, its binding is invalid, or the board has no
            free place for it.
    """
    for device, target in placed(devices, board, registry):
        if not isinstance(target, DeviceTarget):
            raise FerruleError(
                f"device '{device.name}': {device.backend} has no devices, it runs on the core",
                hint="`ferrule backends` lists the backends with devices",
            )
        yield device, target.driver(device)


def _emitted(
    optimized: OptimizedNetwork,
    network: Network,
    firmware: Faces,
    devices: Mapping[str, Device],
    job: Job,
    arena: str,
    *,
    limited: bool,
) -> codegen.Artifact:
    board = job.load_board()
    workspace = board.memory(board.placement.workspace)
    masters = _masters(workspace, optimized.devices)
    named = _others(board, optimized.devices)
    runners = {layer: devices[given.device] for layer, given in optimized.assignment.items()}
    try:
        artifact = codegen.generate(
            codegen.Plan(
                graph=optimized.graph,
                firmware={layer: firmware[device.backend] for layer, device in runners.items()},
                targets={layer: optimized.options.target(device) for layer, device in runners.items()},
                workspace_bytes=workspace.size_bytes,
                line_bytes=workspace.line_bytes,
                masters=masters,
                others=named if any(device.name not in masters for device in optimized.devices) else (),
                named=named,
                workspace=workspace.name,
                arena=arena,
                overlap=job.overlap == "on",
                pool=[device for device in devices.values() if device.pool],
                model=network,
                limited=limited,
            )
        )
    except ArenaOverflowError as error:
        if optimized.notes and spelled(codegen.OFF_HINT) not in str(error.hint):
            error.hint = f"{error.hint} {codegen.OFF_HINT}"
        raise
    if job.input_rows and not artifact.input_rows:
        raise FerruleError(
            f"model '{network.name}' cannot take its input row by row: the backend of its first layers does not",
            hint=f"give the first layers to CpuAcc, or leave out {name_of('input_rows')}",
        )
    return artifact


def placed(devices: Sequence[Device], board: Board, registry: BackendRegistry) -> list[tuple[Device, FirmwareTarget]]:
    """Return devices with their places on a board in their bindings, and the firmware faces of their backends.

    Raises:
        FerruleError: a backend does not exist or has no firmware face, or the board has no place for a device.
    """
    faces = {each.backend: _face(guarded(registry.create(each.backend))) for each in devices}
    return [(device, faces[device.backend]) for device in _placed(devices, faces, board).values()]


def _others(board: Board, devices: Sequence[Device]) -> list[Region]:
    """Return the memories besides that of the workspace in which the core can share tensors with devices."""
    return [
        codegen.shared_region(memory.name, memory.size_bytes, memory.line_bytes, _masters(memory, devices))
        for memory in board.memories
        if memory.kind is MemoryKind.RAM and memory.name != board.placement.workspace and memory.reached_by(CORE)
    ]


def _masters(memory: Memory, devices: Sequence[Device]) -> frozenset[str]:
    """Return the bus masters that reach a memory: the core, and devices by name."""
    reached = [device.name for device in devices if memory.reached_by(device.name, device.regions)]
    return frozenset([*reached, *([CORE] if memory.reached_by(CORE) else [])])


def _placed(devices: Sequence[Device], firmware: Faces, board: Board) -> dict[str, Device]:
    """Return the devices by name, with their places on the board added to their bindings."""
    for device in devices:
        _check_regions(device, board)
    placed = _plugged(_wired(devices, firmware, board), firmware, board)
    for device in placed.values():
        _check_interrupt(device, firmware[device.backend], board)
    return placed


def _plugged(devices: Iterable[Device], firmware: Faces, board: Board) -> dict[str, Device]:
    """Return the devices by name; each device with registers on the bus, but without an address, receives the first of
    the board's expansions that is free and large enough.
    """
    found = {}
    windows: list[AddressRange] = []
    waiting: list[tuple[Device, PluggableTarget]] = []
    for device in devices:
        target, found[device.name] = firmware[device.backend], device
        if isinstance(target, PluggableTarget) and "base" not in device.binding:
            waiting.append((device, target))
        elif isinstance(target, DeviceTarget):
            _take(windows, device, target)
    for device, target in waiting:
        found[device.name] = _plugged_in(device, target, windows, board)
        _take(windows, found[device.name], target)
    return found


def _plugged_in(device: Device, target: PluggableTarget, windows: Sequence[AddressRange], board: Board) -> Device:
    """Return a device in the first place of the board where its window fits; `windows` are taken."""
    needed = 0
    for place in board.expansions:
        socket = Socket(address=place.address, interrupt=place.interrupt, size_bytes=place.size_bytes)
        plugged = target.plugged(device, socket)
        needed = target.driver(plugged).window_bytes
        window = AddressRange(name=device.name, address=place.address, size_bytes=needed)
        if needed <= place.size_bytes and not any(window.overlaps(other) for other in windows):
            return plugged
    places = ", ".join(f"{place.address:#x} with {place.size_bytes:,} B" for place in board.expansions) or "none"
    taken = f"; taken: {', '.join(f'{each.size_bytes:,} B by {each.name!r}' for each in windows)}" if windows else ""
    raise FerruleError(
        f"board {board.name} has {len(board.expansions)} places for accelerators, none for '{device.name}', "
        f"whose registers need {needed:,} B",
        hint=f"the places are: {places}{taken}. Set the address of the registers: "
        f"[devices.{device.name}.binding] base = 0x50000000",
    )


def _take(windows: list[AddressRange], device: Device, target: DeviceTarget) -> None:
    """Add the window of a device's registers; FerruleError if it overlaps with the window of another device."""
    driver = target.driver(device)
    if driver.base is None:
        return
    window = AddressRange(name=device.name, address=driver.base, size_bytes=driver.window_bytes)
    for other in windows:
        if window.overlaps(other):
            low, high = sorted((window, other), key=lambda each: each.address)
            raise FerruleError(
                f"devices '{low.name}' and '{high.name}' overlap: the registers of '{low.name}' have "
                f"{low.size_bytes:,} B at {low.address:#x}, those of '{high.name}' begin at {high.address:#x}",
                hint="give one of them another address, or leave out `base` for a free place of the board",
            )
    windows.append(window)


def _check_interrupt(device: Device, target: FirmwareTarget, board: Board) -> None:
    """Raise FerruleError if a device's driver waits for an interrupt that the board does not have."""
    line = target.driver(device).interrupt if isinstance(target, DeviceTarget) else None
    if line is not None and line >= board.cpu.interrupts and line not in [each.interrupt for each in board.expansions]:
        places = ", ".join(str(each.interrupt) for each in board.expansions if each.interrupt >= board.cpu.interrupts)
        more = f", and {places} for the accelerators of the emulated board" if places else ""
        raise FerruleError(
            f"device '{device.name}' has interrupt {line}, which does not exist: "
            f"{board.name} has 0 to {board.cpu.interrupts - 1}{more}",
            hint=f"change `interrupt` in the binding of '{device.name}'; the board's board.toml states cpu.interrupts",
        )


def _wired(devices: Sequence[Device], firmware: Faces, board: Board) -> list[Device]:
    """Return the devices; devices behind a serial line that name no UART receive spare UARTs in order."""
    named = {device.binding["uart"] for device in devices if "uart" in device.binding}
    spare = iter([uart.name for uart in spare_uarts(board) if uart.name not in named])
    found = []
    for device in devices:
        target = firmware[device.backend]
        if isinstance(target, WiredTarget) and "uart" not in device.binding:
            uart = next(spare, None)
            if uart is None:
                raise FerruleError(
                    f"board {board.name} has no UART left for device '{device.name}': "
                    f"{len(spare_uarts(board))} are neither link nor console"
                )
            found.append(target.wired(device, uart))
        else:
            found.append(device)
    return found


def _face(backend: Backend) -> FirmwareTarget:
    target = backend.firmware_target()
    if target is None:
        raise UnsupportedError(f"backend {backend.id} has no firmware face")
    return target


def _check_regions(device: Device, board: Board) -> None:
    """Raise FerruleError if a device's regions are not memories of the board, if it cannot access the weights, or if it
    cannot access any memory for tensors.
    """
    known = [memory.name for memory in board.memories]
    for region in device.regions:
        if region not in known:
            raise unknown_name(
                "memory", region, known, where=f"on {board.name}, for a region of device '{device.name}'"
            )
    found = [memory for memory in board.memories if memory.reached_by(device.name, device.regions)]
    for_tensors = any(memory.kind is MemoryKind.RAM and memory.reached_by(CORE) for memory in found)
    for purpose, fits in (("workspace", for_tensors), ("weights", board.memory(board.placement.weights) in found)):
        if not fits:
            needed = getattr(board.placement, purpose)
            others = ", and no other RAM of the core" if purpose == "workspace" else ""
            raise FerruleError(
                f"device '{device.name}' cannot access memory '{needed}', where {board.name} has its {purpose}{others}",
                hint=f"its regions are {', '.join(device.regions) or 'all memories'}; see also `masters` in board.toml",
            )
