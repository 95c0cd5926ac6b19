# SPDX-License-Identifier: Apache-2.0
"""From a network and a job to an inspection, a project, or a firmware that can be run."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Unpack

from ferrule._typing import override
from ferrule.boards import Board
from ferrule.codegen import Artifact
from ferrule.devices import Fault
from ferrule.emulation import EngineOptions
from ferrule.emulation.renode.project_files import check_renode, emit_renode
from ferrule.errors import FerruleError
from ferrule.facade.running import run
from ferrule.firmware import (
    DEFAULT_PLATFORM,
    Image,
    Job,
    JobKeywords,
    Project,
    build_project,
    divide,
    emit,
    emit_divided,
    job_from,
    toolchain,
    write_project,
)
from ferrule.formats import ModelFile, load
from ferrule.graph import Array, brief
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork
from ferrule.progress import Progress, Step, say_nothing
from ferrule.report import RunReport
from ferrule.report.explaining import explain_division, explain_schedule
from ferrule.report.inspection import Inspection, inspect_network
from ferrule.report.locating import observed_network

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
    job: Job
    """As it was given."""
    toolchain_version: str
    build_s: float

    @override
    def __repr__(self) -> str:
        return (
            f"<Firmware {brief(self.network.name)} for {self.board.name} by {self.project.manifest.toolchain} "
            f"-{self.project.manifest.optimization}: flash {self.image.flash_bytes:,} B, "
            f"RAM {self.image.ram_bytes:,} B, {self.elf}>"
        )

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
        first extent for n samples. None stands for the documented pattern (`ferrule.network.samples.pattern`).
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
        return run(
            self,
            inputs,
            lambda: self.observed(progress),
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
        network = observed_network(self.network, self.optimized)
        return _compile(network, replace(self.job, board=self.board, out=None), progress)


def compile(  # noqa: A001
    network: Network | ModelFile,
    job: Job | None = None,
    *,
    progress: Progress = say_nothing,
    **keywords: Unpack[JobKeywords],
) -> Firmware:
    """Generate a network's firmware for a board and build it.

    `network` may also be a model's path or bytes. The fields of a Job may be given as keywords: see `ferrule.Job`.

    Raises:
        ModelError: the model's file cannot be read or is malformed.
        UnsupportedError: no backend takes some layer; the message has every backend's reason.
        MissingToolError: the toolchain is not installed; the hint has the command that installs it.
        ArenaOverflowError, TooLargeError: the model is too big for the board; the message says by how much.
        BuildError: the compiler failed.
        FerruleError: there is no such board, backend, device or layer; or there are a job and keywords.
    """
    return _compile(_network_of(network), job_from(job, keywords), progress)


def generate(
    network: Network | ModelFile,
    job: Job | None = None,
    *,
    force: bool = False,
    renode: str | Path | None = None,
    **keywords: Unpack[JobKeywords],
) -> Project:
    """Write a network's firmware project into the job's folder, `out`, for the job's platform.

    `network` may also be a model's path or bytes. The fields of a Job may be given as keywords: see `ferrule.Job`.
    `force` replaces generated files that were edited by hand, and keeps the edited ones as NAME.orig. `renode` is a
    folder for the files that run the project with Renode alone.

    Raises:
        ModelError: the model's file cannot be read or is malformed.
        UnsupportedError: no backend takes some layer; the message has every backend's reason.
        ArenaOverflowError: the tensors do not fit the board's workspace memory.
        FerruleError: an unknown platform, board, toolchain, backend, device or layer, no folder, or one with other
            contents.
    """
    given, wanted = _network_of(network), job_from(job, keywords)
    artifact = emit(given, wanted)
    if renode is not None:
        check_renode(artifact, wanted.platform)
    project = write_project(artifact, wanted, force=force)
    if renode is not None:
        emit_renode(given, artifact, wanted.load_board(), project.folder, Path(renode))
    return project


def inspect(
    network: Network | ModelFile, job: Job | None = None, *, schedule: bool = False, **keywords: Unpack[JobKeywords]
) -> Inspection:
    """Return a network's layers, tensors, MACs and arena; with a job also which backend takes which layer, and why.

    The fields of a Job may be given as keywords. `schedule` adds the firmware's calls of devices, in order.

    Raises:
        ModelError, UnsupportedError: the network is not valid, or the model's file is malformed.
        FerruleError: a backend, device, layer or board that is named does not exist.
    """
    given = _network_of(network)
    inspection = inspect_network(given)
    if job is None and not keywords and not schedule:
        return inspection
    wanted = job_from(job, keywords)
    return replace(
        inspection,
        division=explain_division(given, wanted),
        schedule=explain_schedule(given, wanted) if schedule else None,
    )


def _compile(network: Network, job: Job, progress: Progress) -> Firmware:
    if job.platform != DEFAULT_PLATFORM:
        raise FerruleError(
            f"a firmware for {job.platform} is built by that platform's own tools",
            hint="ferrule.generate writes the project, and its README.md has the commands",
        )
    if job.out is not None:
        return _build(network, job, Path(job.out), progress, stays=True)
    temporary = tempfile.mkdtemp(prefix="ferrule-")
    try:
        firmware = _build(network, job, Path(temporary) / "project", progress, stays=False)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    weakref.finalize(firmware, shutil.rmtree, temporary, ignore_errors=True)
    return firmware


def _build(network: Network, job: Job, folder: Path, progress: Progress, *, stays: bool) -> Firmware:
    compiler = toolchain(job.toolchain)
    compiler.require()
    board = job.load_board()
    placed = replace(job, board=board, out=folder)
    progress(Step(phase=f"generating C for {board.name}"))
    optimized = divide(network, placed)
    artifact = emit_divided(optimized, placed)
    project = write_project(artifact, placed)
    started = time.perf_counter()
    image = build_project(project, stays=stays, progress=progress)
    return Firmware(
        network=network,
        optimized=optimized,
        board=board,
        artifact=artifact,
        project=project,
        image=image,
        job=job,
        toolchain_version=compiler.version(),
        build_s=time.perf_counter() - started,
    )


def _network_of(model: Network | ModelFile) -> Network:
    """Return a network as it is, and load everything else; raises as `load` does."""
    if isinstance(model, Network):
        return model
    if isinstance(model, (str, PathLike, bytes, bytearray, memoryview)):
        return load(model)
    raise FerruleError(
        f"the model is of type {type(model).__name__}, expected a ferrule.Network, a path or bytes",
        hint="ferrule.load reads a .tflite file, ferrule.Network builds a network by hand",
    )
