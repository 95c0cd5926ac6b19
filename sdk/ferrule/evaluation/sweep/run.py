# SPDX-License-Identifier: Apache-2.0
"""One run of a sweep, carried out in a worker process: compile, run, compare."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule import child_process
from ferrule._frozen import frozen
from ferrule._version import VERSION
from ferrule.budget import Resource, afford, limited
from ferrule.child_process import CommandError
from ferrule.errors import FerruleError
from ferrule.evaluation.sweep.file import NO_NEEDS, DataEntry, NeedsEntry
from ferrule.evaluation.sweep.lease import LeaseEntry, leased
from ferrule.evaluation.sweep.samples import evaluate_on_board
from ferrule.evaluation.sweep.workers import Resources
from ferrule.reading import read_bytes
from ferrule.record import Reads, declare, recording, remembered
from ferrule.report.sweep_document import SweepRow

if TYPE_CHECKING:
    from ferrule.firmware import Job
    from ferrule.graph import Array
    from ferrule.network import Network
    from ferrule.report import ReportDocument
    from ferrule.report.duration import DurationPart
    from ferrule.running import Firmware
    from ferrule.running.configuration import Configuration

DONE, FAILED = "done", "failed"
SWEEP_FOLDER = "{sweep}"
READING = ("rounding", "dequantize_weights", "signature", "onnx_arithmetic", "shapes")
"""The options with which a model is read."""
_ARRAY_BYTES = 200
"""What an array takes beside its elements."""
LOAD_LIMIT_S = 300.0
"""Time limit for the command that loads a firmware onto a board."""


@frozen
class Run:
    """Everything that a worker needs for a run; it is sent to the worker's process."""

    digest: str
    model: str
    """As the sweep names it."""
    path: str
    """Absolute path of the model's file, the same on all machines."""
    model_digest: str
    board: str
    """As the sweep names it."""
    board_path: str
    """A name, or an absolute path."""
    toolchain: str
    toolchain_version: str
    """The version that the worker must have."""
    engine: str
    backends: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    configuration: str | None = None
    """Absolute path of ferrule.toml; None without one."""
    folder: str = ""
    """Absolute path of the folder with the sweep's file."""
    data: DataEntry | None = None
    """Samples on which the model is evaluated, with absolute paths."""
    samples: int = 1
    timeout_s: float = 60.0
    clock: str | None = None
    deadline: str | None = None
    """As in the sweep's file, like the rate."""
    rate: str | None = None
    resources: Resources = ()
    lease: LeaseEntry | None = None
    needs: NeedsEntry = NO_NEEDS
    limits: Mapping[Resource, int] = field(default_factory=dict)
    """The limits of the sweep's budget, which each run has anew."""

    @property
    def places(self) -> dict[str, str]:
        """The name in braces that stands for the folder in records, so that they hold for a copy of it elsewhere."""
        return {SWEEP_FOLDER: self.folder} if self.folder else {}

    def row(self, **results: object) -> SweepRow:
        """Return the row of this run with its results."""
        shared: dict[str, Any] = {name: getattr(self, name) for name in _SHARED}
        return SweepRow(run=self.digest, **shared, ferrule_version=VERSION, **results)  # type: ignore[arg-type]

    def failed(self, error: str, **results: object) -> SweepRow:
        """Return the row of this run with the reason why there is no result."""
        return self.row(status=FAILED, error=error, **results)


_SHARED = [name for name in Run.__dataclass_fields__ if name in SweepRow.__dataclass_fields__ and name != "samples"]


def recorded(job: Callable[[Run], SweepRow], run: Run) -> tuple[SweepRow, Reads]:
    """Return the row of a run, and the record of all that was read for it; this is what a worker calls."""
    with recording(foreign=True) as record:
        row = job(run)
        return row, record.reads(run.places)


def carry_out(run: Run) -> SweepRow:
    """Compile and run a model, compare it with the reference, and return the row; problems become its `error`."""
    from ferrule.evaluation.on_board import cpu_s

    started, begun, worked = datetime.now(UTC), time.perf_counter(), cpu_s()
    try:
        with limited(run.limits), leased(run.lease):
            row = _measured(run)
    except FerruleError as error:
        row = run.failed(str(error))
    except Exception as error:  # noqa: BLE001 one run must not end the sweep; the row has the place of the bug
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        row = run.failed(f"{type(error).__name__} in {place}, a bug in ferrule or in a backend: {error}")
    return replace(
        row,
        started=started.isoformat(timespec="milliseconds"),
        seconds=round(time.perf_counter() - begun, 6),
        cpu_s=round(cpu_s() - worked, 6),
    )


def versions(toolchains: tuple[str, ...], engines: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the versions of what runs depend on besides files: Ferrule, Python and its packages, installed backends,
    and by their names the toolchains and engines; what is absent is "not installed".
    """
    from importlib.metadata import entry_points

    from ferrule.backends.discovery import ENTRY_POINT_GROUP
    from ferrule.emulation import engine
    from ferrule.report.surroundings import environment

    surroundings = environment()
    packages = {point.dist for point in entry_points(group=ENTRY_POINT_GROUP) if point.dist is not None}
    return {
        "ferrule": VERSION,
        "Python": f"{surroundings.python} on {surroundings.platform}",
        **surroundings.packages,
        **{package.name: package.version for package in packages},
        **{f"engine {name}": engine(name).version() for name in engines},
        **{name: _toolchain_version(name) for name in toolchains},
    }


def lacks(pairs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return what this process lacks for pairs of an engine and a board."""
    from ferrule.emulation import engine

    return tuple(
        f"engine {name}: {missing} ({missing.hint})"
        for name in dict.fromkeys(name for name, _ in pairs)
        if (missing := engine(name).missing()) is not None
    )


def _measured(run: Run) -> SweepRow:
    from ferrule.emulation import Clock, EngineOptions
    from ferrule.link import DEFAULT_BAUD
    from ferrule.running import RunRequest
    from ferrule.running.run import run as run_firmware
    from ferrule.timing.usage import parse_deadline, parse_rate

    found = _toolchain_version(run.toolchain)
    if found != run.toolchain_version:
        raise FerruleError(
            f"this worker's {run.toolchain} is {found!r}, the sweep's is {run.toolchain_version!r}",
            hint="give all workers the same versions",
        )
    # the runs that differ only in their engine or inputs share a firmware
    options = tuple(sorted((name, value) for name, value in run.options.items() if name != "seed"))
    firmware = _firmware(
        run.path, run.model_digest, run.board_path, run.toolchain, run.backends, options, run.configuration
    )
    if run.needs.load:
        try:
            child_process.run([part.replace("{elf}", str(firmware.elf)) for part in run.needs.load], LOAD_LIMIT_S)
        except CommandError as error:
            raise FerruleError(f"the firmware was not loaded: {error}") from error
    request = RunRequest(
        engine=run.engine,
        options=EngineOptions(port=run.needs.port, baud=run.needs.baud or DEFAULT_BAUD),
        timeout_s=run.timeout_s,
        clock=None if run.clock is None else Clock(run.clock),
        deadline_s=None if run.deadline is None else parse_deadline(run.deadline),
        rate=None if run.rate is None else parse_rate(run.rate),
    )
    if run.data is not None:
        part, metrics, samples = evaluate_on_board(firmware, run.data, read_project(run.configuration).data, request)
        row = _row(run, part.report, firmware)
        evidence = replace(part.evidence, runs=1)
        return replace(row, verdict=part.verdict.value, evidence=evidence, metrics=metrics, samples=samples)
    return _row(run, run_firmware(firmware, _inputs(run, firmware), request).document, firmware)


def time_of(duration: DurationPart) -> dict[str, Any]:
    """Return the fields of a row that state the time of an inference."""
    low, high = duration.range_ms or (None, None)
    return {
        "elapsed": duration.elapsed,
        "milliseconds": duration.milliseconds,
        "least_ms": low,
        "most_ms": high,
        "judgement": duration.judgement or "",
    }


def _row(run: Run, document: ReportDocument, firmware: Firmware) -> SweepRow:
    flash, ram = document.memory.flash, document.memory.ram
    return run.row(
        status=DONE,
        verdict=document.verdict.value,
        evidence=replace(document.evidence, runs=1),
        count=document.count.per_inference,
        unit=document.count.unit,
        **time_of(document.duration),
        flash_bytes=None if flash is None else flash.total,
        ram_bytes=ram.total,
        stack_bytes=ram.stack_used,
        samples=len(document.samples),
        firmware_digest=hashlib.sha256(read_bytes(firmware.elf)).hexdigest(),
    )


@partial(remembered, limit=4)
def _firmware(
    path: str,
    digest: str,
    board: str,
    toolchain: str,
    backends: tuple[str, ...],
    options: tuple[tuple[str, str], ...],
    configuration: str | None,
) -> Firmware:
    from ferrule import running
    from ferrule.firmware.toolchain import toolchain as firmware_toolchain
    from ferrule.firmware.toolchain import ziglang_program

    chosen = dict(options)
    program = firmware_toolchain(toolchain).require()[0]
    if program != str(ziglang_program()):  # an installed package, whose version is known
        declare(program)
    try:
        data = read_bytes(Path(path))
    except OSError as error:
        raise FerruleError(
            f"{path} cannot be read: {error.strerror or error}",
            hint="the files of a sweep must have the same paths on all workers' machines",
        ) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise FerruleError(f"{path} is not the file with which the sweep began", hint="begin the sweep again")
    network = read_model(path, chosen)
    return running.compile(network, job_of(board, toolchain, backends, chosen, configuration))


def read_model(path: str, options: Mapping[str, str]) -> Network:
    """Return the network of a model's file, read by a run's options; raises as `formats.load` does."""
    from ferrule import formats
    from ferrule.formats.onnx import parsed_shapes

    return formats.load(
        path,
        rounding=options.get("rounding"),
        dequantize_weights=options.get("dequantize_weights") == "true",
        signature=options.get("signature"),
        onnx_arithmetic=options.get("onnx_arithmetic"),
        shapes=parsed_shapes(options.get("shapes", "").split()),
    )


def job_of(
    board: str, toolchain: str, backends: tuple[str, ...], options: Mapping[str, str], configuration: str | None
) -> Job:
    """Return the job for these choices.

    Raises:
        FerruleError: a backend does not exist, or an option is not valid; the message names it.
    """
    chosen: dict[str, object] = {"board": board, "toolchain": toolchain, "backends": backends}
    chosen |= {name: options[name] for name in ("optimization", "overlap", "goal") if name in options}
    if "input_rows" in options:
        chosen["input_rows"] = options["input_rows"] == "true"
    of_backends = [f"{name}={value}" for name, value in options.items() if "." in name]
    return read_project(configuration).job(chosen, of_backends)


@remembered
def read_project(configuration: str | None) -> Configuration:
    """Return the project's configuration; the default one for None. Raises as `read_configuration` does."""
    from ferrule.running.configuration import Configuration, read_configuration

    return Configuration() if configuration is None else read_configuration(Path(configuration))


def _inputs(run: Run, firmware: Firmware) -> list[Array] | None:
    """Return the random inputs of a run; None for the fixed pattern."""
    from ferrule.network.samples import joined, random_sample

    if "seed" not in run.options:
        return None
    first, infos = int(run.options["seed"]) * run.samples, firmware.network.inputs
    size = sum(2 * info.size_bytes + _ARRAY_BYTES for info in infos)
    afford(Resource.BYTES, run.samples * size, f"{run.samples:,} samples of random inputs")
    drawn = [random_sample(infos, first + index) for index in range(run.samples)]
    return joined(infos, drawn)


@cache
def _toolchain_version(name: str) -> str:
    from ferrule.firmware import toolchain

    found = toolchain(name)
    return "not installed" if found.find() is None else found.version()
