# SPDX-License-Identifier: Apache-2.0
"""Turns a network and a job into an inspection, a project or a firmware that can be run."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Unpack, overload

from numpy.typing import ArrayLike

from ferrule._typing import override
from ferrule.codegen.acl import AclOptions
from ferrule.devices import Fault
from ferrule.emulation import Clock, EngineOptions
from ferrule.errors import FerruleError
from ferrule.firmware import (
    SEPARATE,
    BuiltFirmware,
    Image,
    Job,
    JobKeywords,
    Project,
    divide_all,
    emit,
    emit_program,
    emit_together,
    job_from,
    make_firmware,
    platform,
    read_image,
    require_tools,
    toolchain,
    write_project,
)
from ferrule.firmware.board_use import Usage
from ferrule.firmware.fitting import RankBy, fits, rank, roomier_boards
from ferrule.firmware.identification import read_identities
from ferrule.formats import ModelFile
from ferrule.graph import brief
from ferrule.interface import either, name_of
from ferrule.memory import ArenaOverflowError
from ferrule.network import Network
from ferrule.progress import Progress, Step, say_nothing
from ferrule.record import recording
from ferrule.report import RunReport
from ferrule.report.explaining import explain_division, explain_kernels, explain_schedule
from ferrule.report.inspecting import inspect_network, with_arena
from ferrule.report.inspection import Inspection
from ferrule.report.locating import observed_network
from ferrule.running.acl_classes import inspect_class
from ferrule.running.networks import Models, network_of, networks_of
from ferrule.running.request import DEFAULT_OPTIONS, DEFAULT_TIMEOUT_S, RunRequest, engine_for
from ferrule.running.run import run
from ferrule.scratch import ScratchFolder
from ferrule.timing.usage import Battery, Rate


@dataclass(frozen=True, kw_only=True)
class Firmware(BuiltFirmware):
    """A network compiled for a board, alone or with others in one firmware."""

    lease: object = field(default=None, repr=False, compare=False)
    """Keeps a temporary folder for as long as one of its firmwares is in use; None if the job names a folder."""

    @override
    def __repr__(self) -> str:
        return (
            f"<Firmware {brief(self.network.name)} for {self.board.name} by {self.toolchain} "
            f"-{self.project.manifest.optimization}: flash {self.image.flash_bytes:,} B, "
            f"RAM {self.image.ram_bytes:,} B, {self.elf}>"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Requests to backends that were not fulfilled; a layer that a backend does not support is not among them."""
        return self.optimized.warnings

    @property
    def elf(self) -> Path:
        """The firmware's ELF file."""
        return self.image.path

    def run(
        self,
        inputs: Sequence[ArrayLike] | Mapping[str, ArrayLike] | None = None,
        *,
        engine: str | None = None,
        options: EngineOptions = DEFAULT_OPTIONS,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        source: str | None = None,
        trace_devices: bool = False,
        faults: Mapping[str, Fault] | None = None,
        locate: bool = False,
        check_ownership: bool = False,
        reset_each: bool | Sequence[bool] = False,
        real: bool = False,
        clock: Clock | None = None,
        deadline_s: Fraction | float | None = None,
        rate: Rate | None = None,
        battery: Battery | None = None,
        progress: Progress = say_nothing,
    ) -> RunReport:
        """Run the firmware on inputs and compare every output with the numpy reference.

        `inputs` are arrays in the order of the model's inputs, or by name; each has its input's shape, or a first axis
        n times as long for n samples. None selects the documented pattern (`ferrule.network.samples.pattern`).
        With `real`, they are real numbers, and so are the report's outputs; see `TensorInfo.quantize`. `engine` is by
        default one that can run the board: unicorn, or else qemu or renode. `options` are the engine's, such as the
        port of a real board. `timeout_s` limits the seconds in which the engine works on one inference, or sleeps; not
        those in which it waits for a processor. `source` is the origin of the inputs as stated in the report.
        `trace_devices` records every device call in the report. `faults` are injected into the devices' models, by
        device name; see `ferrule.devices`. If the outputs differ from the reference, `locate` builds and runs the
        firmware once more, with every tensor as an output, and the report names the first layer that differs.
        `check_ownership` compares every access to the workspace, by the core and by devices, with the plan;
        docs/emulation.md has the rules. The samples of a model with state are a sequence, which begins with the initial
        state; with `reset_each`, each sample does, or each for which a list of bools says so. `clock` is what time is
        counted in; `deadline_s` is the most that an inference may take, `rate` how often one begins and `battery` what
        the board then runs from, all of which the report's `duration` judges, and which need the clock of cycles.

        Raises:
            InputError: an input has the wrong name, shape or dtype.
            MissingToolError: the engine is not installed.
            EngineError: the firmware faulted or hung; the report has pc, symbol and registers.
            OwnershipError: an access to the workspace is not allowed; the message names layer and tensor.
            RunFailedError: a device or an operator failed; the message names the layer.
            LinkError: the firmware's answer violates the protocol.
            FerruleError: the firmware has another application than the link.
        """
        request = RunRequest(
            engine=engine,
            options=options,
            timeout_s=timeout_s,
            source=source,
            trace_devices=trace_devices,
            faults=faults or {},
            locate=locate,
            check_ownership=check_ownership,
            reset_each=reset_each,
            real=real,
            clock=clock,
            deadline_s=deadline_s,
            rate=rate,
            battery=battery,
            progress=progress,
        )
        return run(self, inputs, request)

    def observed(self, progress: Progress = say_nothing) -> Firmware:
        """Build a firmware of the same layers with every tensor as an output; raises as `compile` does."""
        network = observed_network(self.network, self.optimized)
        job = replace(self.job, board=self.board, out=None, arena=SEPARATE, input_rows=False)
        (firmware,) = _compile([network], job, progress)
        return firmware


@overload
def compile(  # noqa: A001
    network: Network | ModelFile,
    job: Job | None = None,
    *,
    engine: str | None = None,
    progress: Progress = say_nothing,
    **keywords: Unpack[JobKeywords],
) -> Firmware: ...


@overload
def compile(  # noqa: A001
    network: Models,
    job: Job | None = None,
    *,
    engine: str | None = None,
    progress: Progress = say_nothing,
    **keywords: Unpack[JobKeywords],
) -> tuple[Firmware, ...]: ...


def compile(  # noqa: A001
    network: Network | ModelFile | Models,
    job: Job | None = None,
    *,
    engine: str | None = None,
    progress: Progress = say_nothing,
    **keywords: Unpack[JobKeywords],
) -> Firmware | tuple[Firmware, ...]:
    """Generate and build a network's firmware for a board.

    `network` may also be a model's path or bytes. The fields of a Job may be given as keywords: see `ferrule.Job`.
    A list of networks becomes one firmware with all of them; it returns a Firmware for each, in the same order, with
    the same image. `engine` names the engine that will run the firmware: if it cannot attach the models of its devices,
    nothing is built.

    Raises:
        ModelError: the model's file cannot be read or is malformed.
        UnsupportedError: no backend supports some layer; the message gives every backend's reason.
        MissingToolError: the toolchain is not installed; the hint gives the command that installs it.
        ArenaOverflowError, TooLargeError: the model is too large for the board; the message states by how much.
        BuildError: the compiler failed.
        FerruleError: there is no such board, backend, device or layer, both a job and keywords are given, or the
            engine cannot run the firmware.
    """
    with recording(builds=False):
        firmwares = _compile(networks_of(network), job_from(job, keywords), progress, engine=engine)
    return firmwares if isinstance(network, (list, tuple)) else firmwares[0]


def adopt(network: Network | ModelFile, elf: str | Path, job: Job, *, engine: str | None = None) -> Firmware:
    """Return the Firmware of a model that has been built already, for the same job; nothing is compiled.

    A run compares the identity in the firmware with the model and the job's plan.

    Raises:
        FerruleError: as `generate`, or the file is no firmware for an Arm core, or it is not that of this model.
    """
    (firmware,) = _compile([network_of(network)], job, engine=engine, adopted=read_image(Path(elf)))
    return firmware


def generate(
    network: Network | ModelFile | Models,
    job: Job | None = None,
    *,
    force: bool = False,
    renode: str | Path | None = None,
    **keywords: Unpack[JobKeywords],
) -> Project:
    """Write a network's firmware project into the job's folder, `out`, for the job's platform.

    `network` may also be a model's path or bytes, or a list of them: one project with all of these models. The fields
    of a Job may be given as keywords: see `ferrule.Job`. `force` replaces generated files that were edited by hand and
    keeps the edited versions as NAME.orig. `renode` is a folder for additional files that run the project with Renode
    alone.

    Raises:
        ModelError: the model's file cannot be read or is malformed.
        UnsupportedError: no backend supports some layer; the message gives every backend's reason.
        ArenaOverflowError: the tensors do not fit the board's workspace memory.
        FerruleError: a platform, board, toolchain, backend, device or layer is unknown, the job has no folder, or the
            folder has other contents.
    """
    with recording(builds=False):
        given, wanted = networks_of(network), job_from(job, keywords)
        with _naming_boards(given, wanted):
            program = emit_program(given, wanted)
        if renode is not None:
            from ferrule.emulation.renode.project_files import check_renode

            check_renode(program, wanted.platform, Path(renode))
        project = write_project(program, wanted, force=force)
    if renode is not None:
        from ferrule.emulation.renode.project_files import emit_renode

        emit_renode(given, program, wanted.load_board(), project.folder, Path(renode))
    return project


def inspect(
    network: Network | ModelFile,
    job: Job | None = None,
    *,
    schedule: bool = False,
    kernels: bool = False,
    target: str | None = None,
    acl: AclOptions | None = None,
    fit: bool = False,
    rate: Rate | None = None,
    battery: Battery | None = None,
    by: RankBy = RankBy.TIME,
    division: bool | None = None,
    **keywords: Unpack[JobKeywords],
) -> Inspection:
    """Return a network's layers, tensors, MACs and arena; with a job also each layer's backend and the reason.

    The fields of a Job may be given as keywords. The arena is that of the firmware for the job, by default a Job().
    `division` decides whether the backends of layers are part of it. `schedule` adds the firmware's device calls in
    order, and what became of each tensor that crosses between the core and devices. `kernels` adds the kernels that
    were considered for each layer of the firmware, with their estimated costs, and why one was chosen. `target`, with
    the options `acl`, adds what would become of each layer in a C++ class (see `generate_acl`). `fit` adds what the
    firmware needs of each board's memories, by its plan for that board, and the planned time and energy of an
    inference, also for inferences at a `rate` and from a `battery` (`ferrule.timing.usage`); the boards are ranked `by`
    one of these.

    Raises:
        ModelError, UnsupportedError: the network is not valid, or the model's file is malformed.
        FerruleError: the job names a backend, device, layer or board that does not exist.
    """
    given, wanted = network_of(network), job_from(job, keywords)
    wanted = replace(wanted, board=wanted.load_board())
    inspection, artifact, exact = inspect_network(given), None, schedule or kernels
    try:
        with _naming_boards([given], wanted) if exact else nullcontext():
            artifact = emit(given, wanted)
    except FerruleError as error:
        if exact:
            raise
        inspection = replace(inspection, arena_problem=str(error))
        if isinstance(error, ArenaOverflowError):  # which is planned nevertheless
            artifact = emit(given, wanted, limited=False)
    if artifact is not None:
        inspection = with_arena(inspection, artifact, wanted)
        if schedule:
            operators, crossings = explain_schedule(artifact)
            inspection = replace(inspection, schedule=operators, crossings=crossings)
        if kernels:
            inspection = replace(inspection, kernels=explain_kernels(artifact, wanted.load_board()))
    if target is not None:
        inspection = replace(inspection, artifact=inspect_class(given, target, acl or AclOptions()))
    if fit:
        inspection = replace(inspection, boards=rank(fits(given, wanted, Usage(rate=rate, battery=battery)), by))
    if division is None:
        division = job is not None or bool(keywords) or schedule or kernels
    return replace(inspection, division=explain_division(given, wanted)) if division else inspection


class _Lease:
    """Shared by the firmwares of one temporary folder, which is removed together with the last of them."""


def _compile(
    networks: Sequence[Network],
    job: Job,
    progress: Progress = say_nothing,
    *,
    engine: str | None = None,
    adopted: Image | None = None,
) -> tuple[Firmware, ...]:
    """Return the firmware of all networks, built in the job's folder or a temporary one, or built already: `adopted`.

    `engine` is to be able to attach the models of the devices.
    """
    tools, compiler, board = platform(job.platform).tools, toolchain(job.toolchain), job.load_board()
    if adopted is None:
        if tools is None:
            compiler.require()
        else:
            require_tools(tools, board.name)
    with ExitStack() as stack:
        lease = folder = None
        if adopted is not None or job.out is None:
            lease, folder = _Lease(), stack.enter_context(ScratchFolder()).path / "project"
        placed = replace(job, board=board, out=folder or job.out)
        progress(Step(phase=f"generating C for {board.name}"))
        divided = divide_all(networks, placed)
        with _naming_boards(networks, placed):
            program = emit_together(divided, placed, networks)
        if adopted is not None and not adopted.has(f"ferrule_{program.artifacts[0].symbol}_link_model"):
            raise FerruleError(
                f"{adopted.path} is not the firmware of model '{program.artifacts[0].graph.name}': it has no table of "
                "its inputs and outputs",
                hint="leave out the model to run a firmware of your own, or give "
                f"{name_of('name')} as when it was generated",
            )
        if engine is not None:
            engine_for(engine, board, program)
        started, build_s = time.perf_counter(), 0.0
        if adopted is None:
            project, image = make_firmware(program, placed, progress)
            build_s = time.perf_counter() - started
        else:
            project, image = write_project(program, placed), adopted
        by_compiler = tools is None and adopted is None
        firmwares = tuple(
            Firmware(
                network=network,
                optimized=optimized,
                board=board,
                artifact=artifact,
                program=program,
                project=project,
                image=image,
                job=job,
                toolchain=compiler.name if tools is None else tools.compiler(),
                toolchain_version=compiler.version()
                if by_compiler
                else next((each.compiler for each in read_identities(image)), ""),
                build_s=build_s,
                lease=lease,
            )
            for network, optimized, artifact in zip(networks, divided, program.artifacts, strict=True)
        )
        if lease is not None:
            weakref.finalize(lease, stack.pop_all().close)
    return firmwares


@contextmanager
def _naming_boards(networks: Sequence[Network], job: Job) -> Iterator[None]:
    """Add the boards that the plan of the firmware fits to the hint of an ArenaOverflowError."""
    try:
        yield
    except ArenaOverflowError as error:
        names = ", ".join(roomier_boards(networks, job))
        shown = either("`ferrule inspect --fit`", "ferrule.inspect(network, fit=True)")
        error.hint = f"{error.hint} Boards with room for this plan: {names or 'none'}; {shown} lists all."
        raise
