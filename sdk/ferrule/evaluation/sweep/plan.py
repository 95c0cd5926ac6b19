# SPDX-License-Identifier: Apache-2.0
"""The runs of a sweep, checked before the first one begins."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from ferrule._frozen import frozen
from ferrule.budget import anew, current
from ferrule.errors import FerruleError, place, unknown_name
from ferrule.evaluation.sweep.axes import FITTING, MAIN_AXES, SEED, Axes, Choice, axes_of, matches, rows_of
from ferrule.evaluation.sweep.file import NO_NEEDS, DataEntry, NeedsEntry, SweepFile, read_file
from ferrule.evaluation.sweep.run import READING, SWEEP_FOLDER, Run, job_of, read_model, read_project
from ferrule.evaluation.sweep.samples import is_there, placed, request_of
from ferrule.evaluation.sweep.workers import Resources
from ferrule.reading import exists, is_file, open_file
from ferrule.record import Reads, recording
from ferrule.timing.usage import parse_deadline, parse_rate

if TYPE_CHECKING:
    from ferrule.running import RunRequest

_Versions = Mapping[str, str]
_Matched = Mapping[str, frozenset[str]]
_SINGLE_NEEDS = ("lease", "port", "baud", "load")


@frozen
class Plan:
    """A sweep whose names are checked; `runs` needs the versions that the workers have."""

    path: Path
    name: str
    file: SweepFile
    axes: Axes
    models: Mapping[str, tuple[str, str]]
    """By name in the sweep: absolute path and SHA-256."""
    reads: Reads
    """What was read to check all runs, which is a part of what is read for each."""
    needs: tuple[tuple[_Matched, NeedsEntry], ...]
    configuration: str | None
    data: DataEntry | None = None
    """The file's, with absolute paths."""

    def __len__(self) -> int:
        """Return the number of runs, which takes time proportional to it."""
        return sum(1 for _ in self.axes.choices())

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines of all runs."""
        return self.axes.all_values("engine")

    @property
    def toolchains(self) -> tuple[str, ...]:
        """The toolchains of all runs."""
        return self.axes.all_values("toolchain")

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of an engine and a board that the runs have; an absolute path stands for a folder."""
        found = dict.fromkeys((choice["engine"], choice["board"]) for choice in self.axes.choices())
        return tuple((engine, _board_path(self.path, board)) for engine, board in found)

    def resource_sets(self) -> tuple[Resources, ...]:
        """Return the different sets of resources that runs take, in the order of their first runs."""
        return tuple(dict.fromkeys(_resources(self._needs(choice)) for choice in self.axes.choices()))

    def runs(self, versions: _Versions) -> Iterator[Run]:
        """Yield the runs in order; `versions` are those of `ferrule.evaluation.sweep.run.versions` on the workers."""
        for choice in self.axes.choices():
            yield self._run(choice, versions)

    def _run(self, choice: Choice, versions: _Versions) -> Run:
        path, digest = self.models[choice["model"]]
        needs = self._needs(choice)
        run = Run(
            digest="",
            model=choice["model"],
            path=path,
            model_digest=digest,
            board=choice["board"],
            board_path=_board_path(self.path, choice["board"]),
            toolchain=choice["toolchain"],
            toolchain_version=versions[choice["toolchain"]],
            engine=choice["engine"],
            backends=tuple(name.strip() for name in choice["backends"].split(",")),
            options={axis: value for axis, value in choice.items() if axis not in MAIN_AXES},
            configuration=self.configuration,
            folder=str(self.path.parent.resolve()),
            data=self.data,
            samples=self.file.samples,
            timeout_s=self.file.timeout_s,
            clock=self.file.clock,
            deadline=self.file.deadline,
            rate=self.file.rate,
            resources=_resources(needs),
            lease=None if needs.lease is None else self.file.lease[needs.lease],
            needs=needs,
            limits=current().limits,
        )
        return replace(run, digest=self._digest(run, versions))

    def _digest(self, run: Run, versions: _Versions) -> str:
        """Return the digest of all choices of a run, and of the versions of its tools.

        The contents of files are not part of it: they are in the record of what was read for the run. Where it runs
        and for how long is neither.
        """
        others = {*self.toolchains, *(f"engine {name}" for name in self.engines if name != run.engine)}
        facts = {
            "model": run.model,
            "board": run.board,
            "toolchain": [run.toolchain, run.toolchain_version],
            "engine": run.engine,
            "backends": run.backends,
            "options": sorted(run.options.items()),
            "samples": run.samples,
            "data": msgspec.to_builtins(self.file.data),
            "configuration": self.configuration and os.path.relpath(self.configuration, self.path.parent.resolve()),
            "versions": sorted((name, text) for name, text in versions.items() if name not in others),
        }
        time = {name: given for name in ("clock", "deadline", "rate") if (given := getattr(run, name)) is not None}
        if time:
            facts["time"] = time
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def _needs(self, choice: Choice) -> NeedsEntry:
        """Return what a run needs besides a processor: of the entries that match it, the later ones precede."""
        needs = NO_NEEDS
        for matched, entry in self.needs:
            if matches(matched, choice):
                given = {name: getattr(entry, name) or getattr(needs, name) for name in _SINGLE_NEEDS}
                needs = structs.replace(needs, resources=needs.resources | entry.resources, **given)
        return needs


def _resources(needs: NeedsEntry) -> Resources:
    return tuple(sorted(needs.resources.items()))


def read_plan(path: Path, configuration: Path | None = None) -> Plan:
    """Read a sweep's file and check its names, without running anything.

    `configuration` is a project's ferrule.toml; by default, that in the current folder, if it exists.

    Raises:
        FerruleError: a file cannot be read or is malformed, or a model, board, toolchain, engine, backend, option or
            lease does not exist; the message names it, and the hint lists what there is.
    """
    from ferrule.emulation import fitting_engine
    from ferrule.running.configuration import CONFIGURATION_NAME

    file, fitting = read_file(path), cache(lambda board: fitting_engine(_board_path(path, board)))
    if configuration is None and exists(Path(CONFIGURATION_NAME)):
        configuration = Path(CONFIGURATION_NAME)
    project_path = None if configuration is None else str(configuration.resolve())
    project = read_project(project_path)
    with place(str(path)):
        models = _models(path, file)
        main = {
            "model": tuple(models),
            "board": file.boards or (project.board or "mps2-an386",),
            "toolchain": file.toolchains or (project.toolchain or "zig",),
            "engine": file.engines or (project.engine or FITTING,),
            "backends": file.backends,
        }
        axes = axes_of(file, main, fitting)
        models = {name: models.get(name) or _model(path, name) for name in axes.all_values("model")}
        _check_values(axes)
        data = None if file.data is None else placed(file.data, path.parent)
        if data is not None and SEED in axes.values:
            raise FerruleError("options.seed draws random inputs, and data are given, expected one of them")
        if file.samples > 1 and SEED not in axes.values:
            raise FerruleError(f"samples = {file.samples}: inputs are drawn at random, which needs options.seed")
        plan = Plan(
            path=path,
            name=file.name or path.stem,
            file=file,
            axes=axes,
            models=models,
            reads=(),
            needs=tuple(
                (rows_of(axes, entry.match, f"needs[{index}].match"), entry) for index, entry in enumerate(file.needs)
            ),
            configuration=project_path,
            data=data,
        )
        with recording(foreign=True) as record:
            _check(plan)
        return replace(plan, reads=record.reads({SWEEP_FOLDER: str(path.parent.resolve())}))


def _board_path(path: Path, board: str) -> str:
    """Return a board as the sweep's file names it; an absolute path stands for a folder."""
    return str((path.parent / board).resolve()) if "/" in board else board


def _models(path: Path, file: SweepFile) -> dict[str, tuple[str, str]]:
    names: list[str] = []
    for given in file.models:
        if is_there(path.parent / given) or not glob.has_magic(given):
            names.append(given)
            continue
        found = sorted(glob.glob(given, root_dir=path.parent))  # noqa: PTH207 names as the user wrote them
        if not found:
            raise FerruleError(f"models: no file matches {given}", hint=f"paths are relative to {path.parent}")
        names += [name for name in found if name not in names]
    return {name: _model(path, name) for name in names}


def _model(path: Path, name: str) -> tuple[str, str]:
    file, hint = (path.parent / name).resolve(), f"paths are relative to {path.parent}"
    try:
        if not is_file(file):
            raise FerruleError(f"model {name} is not a file", hint=hint)
        with open_file(file) as stream:
            return str(file), hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FerruleError(f"model {name} cannot be read: {error.strerror or error}", hint=hint) from error


def _check_values(axes: Axes) -> None:
    """Raise FerruleError for an option without such a value."""
    from ferrule.firmware.job import GOALS, OVERLAPS
    from ferrule.firmware.toolchain import OPTIMIZATIONS
    from ferrule.formats.onnx import Arithmetic
    from ferrule.formats.tflite.versions import VERSIONS

    truth = ("true", "false")
    allowed = {
        "goal": GOALS,
        "optimization": OPTIMIZATIONS,
        "overlap": OVERLAPS,
        "rounding": tuple(VERSIONS),
        "input_rows": truth,
        "dequantize_weights": truth,
        "onnx_arithmetic": tuple(Arithmetic),
    }
    for axis in axes.values:
        for value in axes.all_values(axis):
            if axis in allowed and value not in allowed[axis]:
                raise unknown_name(axis, value, allowed[axis])
            if axis == SEED and not value.isdecimal():
                raise FerruleError(f"seed {value!r}: expected a whole number, 0 or more")


def _check(plan: Plan) -> None:
    """Raise FerruleError for a name that does not exist, and for a pair of engine and board that does not fit."""
    from ferrule.backends.guarded import guarded
    from ferrule.boards import load_board
    from ferrule.emulation import engine
    from ferrule.firmware import toolchain

    for name in plan.toolchains:
        toolchain(name)
    for name in plan.engines:
        engine(name)
    registry = read_project(plan.configuration).registry()
    for text in plan.axes.all_values("backends"):
        for name in text.split(","):
            guarded(registry.create(name.strip()))
    for index, entry in enumerate(plan.file.needs):
        if entry.lease is not None and entry.lease not in plan.file.lease:
            raise unknown_name("lease", entry.lease, plan.file.lease, where=f"as needs[{index}] has it")
    boards = {board: load_board(board) for _, board in plan.pairs()}
    problems = [
        f"engine {name} cannot run board {boards[board].name}: {reason}"
        for name, board in plan.pairs()
        if (reason := engine(name).refuses(boards[board])) is not None
    ]
    if problems:
        raise FerruleError("; ".join(problems), hint="leave these runs out by [[exclude]] with engine and board")
    asked = _time_asked(plan.file)
    for name, board in plan.pairs():
        asked.clock_for(boards[board], engine(name))
    _check_jobs(plan)


def _time_asked(file: SweepFile) -> RunRequest:
    """Return what a sweep asks about time; FerruleError if its deadline or its rate is malformed."""
    from ferrule.emulation import Clock
    from ferrule.running import RunRequest

    return RunRequest(
        clock=None if file.clock is None else Clock(file.clock),
        deadline_s=None if file.deadline is None else parse_deadline(file.deadline),
        rate=None if file.rate is None else parse_rate(file.rate),
    )


def _check_jobs(plan: Plan) -> None:
    """Raise FerruleError for jobs and models that no run could begin with."""
    jobs: set[tuple[str, ...]] = set()
    models: set[tuple[str | None, ...]] = set()
    for choice in plan.axes.choices():
        options = {axis: value for axis, value in choice.items() if axis not in MAIN_AXES and axis != SEED}
        job = tuple(options.values())
        if job not in jobs:
            jobs.add(job)
            job_of(choice["board"], choice["toolchain"], ("CpuAcc",), options, plan.configuration)
        model = (choice["model"], *(options.get(name) for name in READING))
        if model not in models:
            models.add(model)
            with anew():
                network = read_model(plan.models[choice["model"]][0], options)
                if plan.data is not None:
                    request_of(plan.data, read_project(plan.configuration).data).opened(network)
