# SPDX-License-Identifier: Apache-2.0
"""From a network to a project on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ferrule import codegen
from ferrule.backends import Backend, BackendId, Device
from ferrule.backends.firmware import CoreFeatures, FirmwareTarget, PluggableTarget, Socket
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.registry import BackendRegistry
from ferrule.boards import Board, load_board
from ferrule.errors import FerruleError, UnsupportedError, unknown_name
from ferrule.facade.division import DEFAULT_BACKENDS, DEFAULT_DIVISION, Division, divide
from ferrule.facade.renode_files import check_renode, emit_renode
from ferrule.facade.wiring import wired
from ferrule.firmware import DEFAULT_PLATFORM, Project, write_project
from ferrule.importers import load_tflite
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork

DEFAULT_BOARD = "mps2-an386"
DEFAULT_TOOLCHAIN = "zig"


def load(path: str | Path) -> Network:
    """Return the network of a .tflite file; it is called after the file.

    Raises:
        ModelError: the file cannot be read or is malformed; the message names the place.
        UnsupportedError: it has something that is not supported; the message names it and its place.
    """
    return load_tflite(Path(path))


def emit(network: Network, *, board: Board, division: Division = DEFAULT_DIVISION) -> codegen.Artifact:
    """Return the network as C for a board; raises as `generate` does."""
    return emit_divided(divide(network, division), board=board, registry=division.source)


def emit_divided(optimized: OptimizedNetwork, *, board: Board, registry: BackendRegistry) -> codegen.Artifact:
    """Return a divided network as C for a board: one executor that calls the backends' code in turn.

    Raises:
        ArenaOverflowError: the tensors do not fit the board's workspace memory.
        FerruleError: a device does not reach the board's memory.
    """
    for device in optimized.devices:
        _check_regions(device, board)
    backends = {name: registry.create(name) for name in optimized.backends}
    targets = {name: _target(backend) for name, backend in backends.items()}
    devices = wired(_plugged(optimized.devices, targets, board), targets, board)
    graph = optimized.graph
    return codegen.generate(
        graph,
        targets={layer.name: targets[optimized.assignment[layer.name].backend] for layer in graph.layers},
        devices={layer.name: devices[optimized.assignment[layer.name].device] for layer in graph.layers},
        core=CoreFeatures(name=board.cpu.type, fpu=board.cpu.hard_float, dsp=board.cpu.dsp, mve=board.cpu.mve),
        workspace_bytes=board.memory(board.placement.workspace).size_bytes,
    )


def generate(
    network: Network,
    *,
    out: Path,
    board: str = DEFAULT_BOARD,
    toolchain: str = DEFAULT_TOOLCHAIN,
    backends: Sequence[str] = DEFAULT_BACKENDS,
    hints: Mapping[str, str] | None = None,
    devices: Sequence[Device] = (),
    model_options: Mapping[str, ModelOptions] | None = None,
    registry: BackendRegistry | None = None,
    optimization: str = "O3",
    platform: str = DEFAULT_PLATFORM,
    force: bool = False,
    renode: Path | None = None,
) -> Project:
    """Write the network's firmware project for a platform into the folder `out`.

    `backends` is in order of preference. `hints` has, by layer, "Backend" or "Backend/device", tried first; `devices`
    are the instances of backends; `model_options` has options by backend; `registry` is where backends come from, by
    default all that are installed. `force` replaces generated files that were edited by hand, and keeps the edited
    ones as NAME.orig. `renode` is a folder for the files that run the project with Renode alone.

    Raises:
        UnsupportedError: no backend takes some layer; the message has every backend's reason.
        ArenaOverflowError: the tensors do not fit the board's workspace memory.
        FerruleError: an unknown platform, board, toolchain, backend, device or layer, or a folder with other contents.
    """
    described = load_board(board)
    division = Division(
        backends=tuple(backends),
        hints=hints or {},
        devices=tuple(devices),
        model_options=model_options or {},
        registry=registry,
    )
    artifact = emit(network, board=described, division=division)
    if renode is not None:
        check_renode(artifact, platform, DEFAULT_PLATFORM)
    project = write_project(
        artifact,
        board=described,
        toolchain_name=toolchain,
        optimization=optimization,
        folder=out,
        platform_name=platform,
        force=force,
    )
    if renode is not None:
        emit_renode(network, artifact, described, out, renode)
    return project


def _plugged(
    devices: Sequence[Device], targets: Mapping[BackendId, tuple[BackendId, FirmwareTarget]], board: Board
) -> dict[str, Device]:
    """Return the devices by name; those with registers on the bus get the board's expansions, one after the other."""
    sockets = iter(board.expansions)
    found = {}
    for device in devices:
        target = targets[device.backend][1]
        found[device.name] = device
        if isinstance(target, PluggableTarget) and "base" not in device.binding:
            expansion = next(sockets, None)
            if expansion is None:
                raise FerruleError(
                    f"board {board.name} has {len(board.expansions)} places for accelerators, none for '{device.name}'",
                    hint=f"say where its registers are: [devices.{device.name}.binding] base = 0x50000000",
                )
            socket = Socket(address=expansion.address, interrupt=expansion.interrupt)
            found[device.name] = target.plugged(device, socket)
    return found


def _target(backend: Backend) -> tuple[BackendId, FirmwareTarget]:
    target = backend.firmware_target()
    if target is None:
        raise UnsupportedError(f"backend {backend.id} has no firmware face")
    return backend.id, target


def _check_regions(device: Device, board: Board) -> None:
    """Refuse a device whose regions are not memories of the board, or leave out where tensors and weights lie."""
    known = [memory.name for memory in board.memories]
    for region in device.regions:
        if region not in known:
            raise unknown_name(f"memory on {board.name} (a region of device '{device.name}')", region, known)
    for purpose in ("workspace", "weights"):
        needed = getattr(board.placement, purpose)
        if device.regions and needed not in device.regions:
            raise FerruleError(
                f"device '{device.name}' does not reach memory '{needed}', where {board.name} has its {purpose}",
                hint=f"its regions are {', '.join(device.regions)}; without `regions` it reaches every memory",
            )
