# SPDX-License-Identifier: Apache-2.0
"""From a network to a firmware that can be run."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferrule.backends import Device
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.registry import BackendRegistry
from ferrule.boards import Board, load_board
from ferrule.codegen import Artifact
from ferrule.devices import Fault
from ferrule.emulation import EngineOptions
from ferrule.facade.division import DEFAULT_BACKENDS, Division, divide
from ferrule.facade.generation import DEFAULT_BOARD, DEFAULT_TOOLCHAIN, emit_divided
from ferrule.facade.locating import observed_network
from ferrule.facade.step import Progress, Step, say_nothing
from ferrule.firmware import Image, Project, build_project, toolchain, write_project
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork
from ferrule.report import RunReport

DEFAULT_OPTIONS = EngineOptions()


@dataclass(frozen=True, kw_only=True)
class Firmware:
    """A network built for a board."""

    network: Network
    """As it was given: its numpy reference is what the firmware is compared with."""
    optimized: OptimizedNetwork
    """As it was divided over backends; `messages` says who did not get a layer, and why."""
    board: Board
    artifact: Artifact
    project: Project
    image: Image
    division: Division
    """How the user wanted it divided."""
    toolchain_version: str
    build_s: float

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user asked of backends and did not get; that a backend does not take some layer is none."""
        return self.optimized.warnings

    @property
    def elf(self) -> Path:
        """The firmware's ELF file."""
        return self.image.path

    def run(
        self,
        inputs: Sequence[Array] | Mapping[str, Array] | None = None,
        *,
        engine: str = "unicorn",
        options: EngineOptions = DEFAULT_OPTIONS,
        timeout_s: float = 60.0,
        source: str | None = None,
        trace_devices: bool = False,
        faults: Mapping[str, Fault] | None = None,
        locate: bool = False,
        progress: Progress = say_nothing,
    ) -> RunReport:
        """Run the firmware on inputs and compare every output with the numpy reference.

        `inputs` are arrays in the order of the model's inputs, or by name; each has its input's shape, or n times its
        first extent for n samples. None stands for the documented pattern (`ferrule.facade.samples.pattern`).
        `options` are the engine's, such as the port of a real board. `timeout_s` is the wall-clock time that one
        inference may take. `source` says in the report where the inputs came from. `trace_devices` puts every call
        of a device into the report. `faults` are injected into the models of devices, by device; see `ferrule.devices`.
        If the run differs from the reference, `locate` has the firmware built and run once more, with every tensor as
        an output, and the report name the first layer that differs.

        Raises:
            InputError: an input has the wrong name, shape or dtype.
            MissingToolError: the engine is not installed.
            EngineError: the firmware faulted or hung; the report has pc, symbol and registers.
            RunFailedError: a device or an operator failed; the message names the layer.
            LinkError: the firmware answered something that it should not.
        """
        from ferrule.facade.running import run

        return run(
            self,
            inputs,
            engine=engine,
            options=options,
            timeout_s=timeout_s,
            source=source,
            trace_devices=trace_devices,
            faults=faults or {},
            locate=locate,
            progress=progress,
        )

    def observed(self, progress: Progress = say_nothing) -> Firmware:
        """Return the same layers with every tensor as an output, built anew; raises as `compile` does."""
        manifest = self.project.manifest
        network = observed_network(self.network, self.optimized)
        return _in_temporary_folder(
            network, self.board, manifest.toolchain, self.division, manifest.optimization, progress
        )


def compile(  # noqa: A001
    network: Network,
    *,
    board: str = DEFAULT_BOARD,
    toolchain: str = DEFAULT_TOOLCHAIN,
    backends: Sequence[str] = DEFAULT_BACKENDS,
    hints: Mapping[str, str] | None = None,
    devices: Sequence[Device] = (),
    model_options: Mapping[str, ModelOptions] | None = None,
    registry: BackendRegistry | None = None,
    optimization: str = "O3",
    out: str | Path | None = None,
    progress: Progress = say_nothing,
) -> Firmware:
    """Generate a network's firmware for a board and build it.

    `board` is a name or the path of a board's folder, `out` the folder for the project; without one it is a temporary
    folder that lives as long as the Firmware. `backends`, `hints`, `devices` and `registry`: see
    `ferrule.facade.generate`. `model_options` has options by backend.

    Raises:
        UnsupportedError: no backend takes some layer; the message has every backend's reason.
        MissingToolError: the toolchain is not installed; the hint has the command that installs it.
        ArenaOverflowError, TooLargeError: the model is too big for the board; the message says by how much.
        BuildError: the compiler failed.
    """
    division = Division(
        backends=tuple(backends),
        hints=hints or {},
        devices=tuple(devices),
        model_options=model_options or {},
        registry=registry,
    )
    described = load_board(board)
    if out is not None:
        return _compile(network, described, toolchain, division, optimization, Path(out), progress)
    return _in_temporary_folder(network, described, toolchain, division, optimization, progress)


def _in_temporary_folder(
    network: Network, board: Board, toolchain: str, division: Division, optimization: str, progress: Progress
) -> Firmware:
    temporary = tempfile.mkdtemp(prefix="ferrule-")
    try:
        firmware = _compile(network, board, toolchain, division, optimization, Path(temporary) / "project", progress)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    weakref.finalize(firmware, shutil.rmtree, temporary, ignore_errors=True)
    return firmware


def _compile(
    network: Network,
    board: Board,
    toolchain_name: str,
    division: Division,
    optimization: str,
    folder: Path,
    progress: Progress,
) -> Firmware:
    chosen = toolchain(toolchain_name)
    chosen.require()
    progress(Step(phase=f"generating C for {board.name}"))
    optimized = divide(network, division)
    artifact = emit_divided(optimized, board=board, registry=division.source)
    project = write_project(
        artifact,
        board=board,
        toolchain_name=toolchain_name,
        optimization=optimization,
        folder=folder,
    )
    phase = f"building with {toolchain_name}"
    progress(Step(phase=phase))
    started = time.perf_counter()
    image = build_project(project, progress=lambda done, total, _: progress(Step(phase=phase, done=done, total=total)))
    return Firmware(
        network=network,
        optimized=optimized,
        board=board,
        artifact=artifact,
        project=project,
        image=image,
        division=division,
        toolchain_version=chosen.version(),
        build_s=time.perf_counter() - started,
    )
