# SPDX-License-Identifier: Apache-2.0
"""From a network to a project on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferrule import codegen
from ferrule.backends import BackendId, create_backend
from ferrule.backends.firmware import CoreFeatures, FirmwareTarget
from ferrule.boards import Board, load_board
from ferrule.errors import UnsupportedError
from ferrule.firmware import Project, write_project
from ferrule.graph import Graph
from ferrule.importers import load_tflite
from ferrule.network import Network
from ferrule.optimizer import assign_backends

DEFAULT_BOARD = "mps2-an386"
DEFAULT_TOOLCHAIN = "zig"
DEFAULT_BACKENDS = ("CpuAcc",)


def load(path: str | Path) -> Network:
    """Return the network of a .tflite file; it is called after the file.

    Raises:
        ModelError: the file cannot be read or is malformed; the message names the place.
        UnsupportedError: it has something that is not supported; the message names it and its place.
    """
    return load_tflite(Path(path))


def emit(network: Network, *, board: Board, backends: Sequence[str] = DEFAULT_BACKENDS) -> codegen.Artifact:
    """Return the network as C for a board; raises as `generate` does."""
    network.validate()
    chosen = [create_backend(name.strip()) for name in backends]
    assignment = assign_backends(network, chosen)
    targets = {backend.id: backend.firmware_target() for backend in chosen}
    core = CoreFeatures(name=board.cpu.type, fpu=board.cpu.hard_float, dsp=board.cpu.dsp)
    memory = board.memory(board.placement.workspace)
    return codegen.generate(
        network,
        targets={layer.name: _target(network, layer.name, assignment[layer.name], targets) for layer in network.layers},
        core=core,
        workspace_bytes=memory.size_bytes,
    )


def generate(
    network: Network,
    *,
    out: Path,
    board: str = DEFAULT_BOARD,
    toolchain: str = DEFAULT_TOOLCHAIN,
    backends: Sequence[str] = DEFAULT_BACKENDS,
    optimization: str = "O3",
) -> Project:
    """Write the network's firmware project into the folder `out`.

    Raises:
        UnsupportedError: no backend takes some layer; the message has every backend's reason.
        ArenaOverflowError: the tensors do not fit the board's workspace memory.
        FerruleError: an unknown board, toolchain or backend, or a folder with other contents.
    """
    described = load_board(board)
    return write_project(
        emit(network, board=described, backends=backends),
        board=described,
        toolchain_name=toolchain,
        optimization=optimization,
        folder=out,
    )


def _target(
    graph: Graph, layer: str, backend: BackendId, targets: dict[BackendId, FirmwareTarget | None]
) -> tuple[BackendId, FirmwareTarget]:
    target = targets[backend]
    if target is None:
        raise UnsupportedError(
            f"layer '{layer}' of '{graph.name}' is assigned to backend {backend}, which has no firmware face"
        )
    return backend, target
