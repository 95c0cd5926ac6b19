# SPDX-License-Identifier: Apache-2.0
"""Searches the precision of each block of layers: the best metric within a budget of a board."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from contextlib import ExitStack
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.budget import begun
from ferrule.codegen.digest import digest
from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.data import DataSet, DataSettings
from ferrule.evaluation.evaluate import Evaluation
from ferrule.evaluation.metrics import LOWER
from ferrule.evaluation.predictions import on_host
from ferrule.evaluation.request import EvaluationRequest
from ferrule.evaluation.sweep.processes import LocalWorkers
from ferrule.evaluation.sweep.workers import Workers
from ferrule.firmware import Job
from ferrule.formats import ModelFile, to_tflite
from ferrule.graph import Array
from ferrule.interface import option
from ferrule.network import Network
from ferrule.network.samples import in_real_numbers
from ferrule.progress import Progress, Step, say_nothing
from ferrule.quantization.library import check_installed
from ferrule.quantization.model import FloatForm
from ferrule.quantization.observation import observed_ranges
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import RangeRule
from ferrule.quantization.search.budget import BoardBudget
from ferrule.quantization.search.explore import Setting, explore
from ferrule.quantization.search.trial import LEVELS, Subject, attempt, blocks, noise
from ferrule.quantization.search.trials_file import TrialsFile
from ferrule.report.base import part_of
from ferrule.report.document import ModelPart
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.search_document import BlockPart, ResultPart, SearchDocument, TrialPart
from ferrule.report.sections import number
from ferrule.report.surroundings import environment
from ferrule.report.tradeoff import front
from ferrule.running.networks import network_of

EVALUATIONS = 60
_BUILT = 5
"""The settings, the best first, that are built to see whether they keep the budget."""
_TIE = 0.05
"""How much the noise counts beside a metric, which often is the same for many settings."""


@frozen
class SearchRequest:
    """What is searched, and how; docs/quantize.md describes the fields."""

    budget: BoardBudget
    job: Job
    labels: str | None = None
    metric: str | None = None
    """None for accuracy with labels, and for the noise of the outputs without."""
    io: Precision = Precision.INT8
    ranges: str = "minmax"
    evaluations: int = EVALUATIONS
    """The most settings that are tried."""
    seed: int = 0
    limit: int | None = None
    jobs: int = 1
    """The number of processes that try settings."""
    results: Path | None = None
    """The file of trials, from which a search goes on that was stopped."""
    progress: Progress = say_nothing

    def __post_init__(self) -> None:
        for name, count in (("evaluations", self.evaluations), ("jobs", self.jobs)):
            if count < 1:
                raise FerruleError(f"{name} is {count}, expected at least 1")
        if self.metric is not None and self.labels is None:
            raise FerruleError(
                f"the metric {self.metric} compares with labels, and there are none", hint=option("labels", "L")
            )


@frozen
class FoundModel(SearchDocument):
    """The results of a search: what its JSON has, by the same names, and the model, if one keeps the budget."""

    network: Network | None = field(repr=False)

    @property
    @override
    def document(self) -> SearchDocument:
        """The results without the model."""
        return part_of(SearchDocument, self)

    @property
    def tflite(self) -> bytes:
        """The model as a TensorFlow Lite file; FerruleError if none keeps the budget."""
        if self.network is None:
            raise FerruleError("no setting keeps the budget, so that there is no model")
        return to_tflite(self.network)

    __repr__ = SearchDocument.__repr__


@begun()
def search(
    model: Network | ModelFile,
    data: str | Sequence[str] | DataSet,
    request: SearchRequest,
    settings: DataSettings | None = None,
) -> FoundModel:
    """Return the model of the best metric that keeps a budget, with the front of what was tried.

    Half of the samples, drawn with the seed, are those by which ranges and settings are chosen; metrics are reported
    on the others. The costs of a trial are planned; the chosen model is built and run on the board, and if it then
    exceeds the budget, the next best one is.

    Raises:
        InputError: the data cannot be read or does not fit the model, or has fewer than four samples.
        FerruleError: as `quantize` and `evaluate`.
    """
    check_installed()
    network, rule = network_of(model), RangeRule.parse(request.ranges)
    form = FloatForm.of(network)
    samples = EvaluationRequest(
        data=data, labels=request.labels, settings=settings, limit=request.limit, seed=request.seed
    ).opened(form.normal)
    if len(samples) < 4:
        raise InputError(f"{samples.part.source} has {len(samples)} samples, expected at least 4: half of them choose")
    chosen, others = _halves(samples, request.seed)
    metric = request.metric or ("accuracy" if samples.labels is not None else "")
    everything = {layer.name: Precision.INT8 for layer in form.normal.layers}
    ranges = observed_ranges(form.normal, chosen, rule, everything, form.names, request.progress)
    subject = Subject(
        form=form,
        ranges=ranges,
        blocks=blocks(form.simple),
        io=request.io,
        job=request.job,
        data=chosen,
        metric=metric,
        outputs=_outputs(form.normal, chosen, request.progress),
    )
    trials = _judged(_tried(subject, request), request.budget, metric)
    found = _best(subject, others, trials, request)
    return FoundModel(
        ferrule_version=VERSION,
        model=ModelPart(name=network.name, digest=digest(network), macs=network.macs()),
        data=samples.part,
        board=request.job.load_board().name,
        budget=request.budget.limits,
        metric=metric,
        seed=request.seed,
        chosen_by=len(chosen),
        reported_on=len(others),
        trials=trials,
        environment=environment(),
        blocks=found.blocks,
        results=found.results,
        measured=found.measured,
        rejected=found.rejected,
        proof=found.proof,
        network=found.network,
    )


def _halves(data: DataSet, seed: int) -> tuple[DataSet, DataSet]:
    """Return two halves of the samples, drawn with a seed; each keeps their order."""
    places = np.random.default_rng(seed).permutation(len(data))
    middle = (len(data) + 1) // 2
    halves = (sorted(int(each) for each in part) for part in (places[:middle], places[middle:]))
    first, second = (replace(data, order=[data.order[index] for index in half], _digests=[]) for half in halves)
    return first, second


def _outputs(network: Network, data: DataSet, progress: Progress) -> tuple[Array, ...]:
    return tuple(in_real_numbers(network.outputs, on_host(network, data, progress, what="float model").outputs))


def _tried(subject: Subject, request: SearchRequest) -> list[TrialPart]:
    """Return the trials in their order; those of the file of results are not made again."""
    made: list[TrialPart] = []
    phase = "trying settings"
    with TrialsFile(request.results, _key(subject, request)) as file, ExitStack() as stack:
        workers = None if request.jobs == 1 else stack.enter_context(LocalWorkers(request.jobs))

        def evaluate(settings: Sequence[Setting]) -> list[tuple[float, ...] | None]:
            trials = {setting: file.known(_names(setting)) for setting in settings}
            missing = [setting for setting, trial in trials.items() if trial is None]
            for setting, trial in _attempts(subject, missing, workers):
                file.add(trial)
                trials[setting] = trial
                request.progress(Step(phase=phase, done=len(made) + 1, total=request.evaluations))
            found = [trial for trial in trials.values() if trial is not None]
            made.extend(found)
            return [objectives(trial, request.budget, subject.metric) for trial in found]

        request.progress(Step(phase=phase))
        explore(len(subject.blocks), len(LEVELS), evaluate, request.evaluations, request.seed)
    return made


def _attempts(
    subject: Subject, settings: Sequence[Setting], workers: Workers | None
) -> Iterator[tuple[Setting, TrialPart]]:
    """Yield the trials of settings as they end, made by workers if there are any."""
    if workers is None:
        yield from ((each, attempt(subject, each)) for each in settings)
        return
    futures: dict[Future[TrialPart], Setting] = {workers.submit((), attempt, subject, each): each for each in settings}
    for future in as_completed(futures):
        yield futures[future], future.result()


def objectives(trial: TrialPart, budget: BoardBudget, metric: str) -> tuple[float, ...] | None:
    """Return what is to be small of a trial: the loss, and what the budget names; None if it could not be made."""
    if trial.problem or trial.noise is None or not np.isfinite(trial.noise):
        return None
    loss = trial.noise
    if metric:
        if trial.metric is None:
            return None
        loss = _TIE * min(trial.noise, 1.0) + (trial.metric if metric in LOWER else 1 - trial.metric)
    costs = [trial.taken[kind] for kind in budget.limits]
    known = [cost for cost in costs if cost is not None]
    return None if len(known) < len(costs) else (loss, *known)


def _names(setting: Setting) -> tuple[str, ...]:
    return tuple(str(LEVELS[level]) for level in setting)


def _key(subject: Subject, request: SearchRequest) -> str:
    """Return the digest of all that trials depend on but their settings."""
    board = request.job.load_board()
    about = (
        VERSION,
        digest(subject.form.simple),
        subject.data.part.digest,  # which is known, since all have been read
        board.name,
        repr(request.job),
        subject.metric,
        request.ranges,
        request.io,
        request.seed,
    )
    return hashlib.sha256("\n".join(map(str, about)).encode()).hexdigest()


def _judged(trials: Sequence[TrialPart], budget: BoardBudget, metric: str) -> tuple[TrialPart, ...]:
    """Return the trials with what they exceed, and whether they are on the front."""
    points = [objectives(trial, budget, metric) for trial in trials]
    known = [index for index, point in enumerate(points) if point is not None]
    kept = front(np.asarray([points[index] for index in known], np.float64)) if known else ()
    best = {index for index, keep in zip(known, kept, strict=True) if keep}
    return tuple(
        replace(trial, front=index in best, exceeds=() if trial.problem else budget.exceeded(trial.taken))
        for index, trial in enumerate(trials)
    )


@frozen
class _Chosen:
    """The fields of `FoundModel` that depend on the choice."""

    blocks: tuple[BlockPart, ...]
    results: tuple[ResultPart, ...] = ()
    measured: dict[str, float] = field(default_factory=dict)
    proof: EvaluationDocument | None = None
    network: Network | None = None
    rejected: tuple[str, ...] = ()


def _best(subject: Subject, others: DataSet, trials: Sequence[TrialPart], request: SearchRequest) -> _Chosen:
    """Return the best trial that keeps the budget as planned, and when it is built and run."""
    within = [trial for trial in trials if not trial.exceeds and not trial.problem]
    scored = [(point, trial) for trial in within if (point := objectives(trial, request.budget, subject.metric))]
    ranked = [trial for _, trial in sorted(scored, key=lambda each: each[0])]
    rejected: list[str] = []
    for trial in ranked[:_BUILT]:
        network = subject.network([LEVELS.index(Precision(name)) for name in trial.setting])
        request.progress(Step(phase=f"building and running {trial.text}"))
        done = subject.evaluation(network, others, job=request.job)
        measured = _measured(done)
        exceeded = request.budget.exceeded(measured)
        if exceeded:
            taken = (f"{kind} {number(measured[kind]) or 'is not known'}" for kind in exceeded)
            rejected.append(f"{trial.text}: {', '.join(taken)}")
            continue
        kinds = {kind: value for kind, value in measured.items() if value is not None and kind in request.budget.limits}
        return _Chosen(
            blocks=_blocks(subject, trial.setting),
            results=tuple(_results(subject, others, network, done)),
            measured=kinds,
            proof=done.document,
            network=network,
            rejected=tuple(rejected),
        )
    return _Chosen(blocks=_blocks(subject, ("",) * len(subject.blocks)), rejected=tuple(rejected))


def _blocks(subject: Subject, setting: Sequence[str]) -> tuple[BlockPart, ...]:
    return tuple(BlockPart(layers=names, chosen=name) for names, name in zip(subject.blocks, setting, strict=True))


def _measured(done: Evaluation) -> dict[str, float | None]:
    """Return what a model takes that was built and run, by the budget's names; milliseconds with the error's end."""
    assert done.proof is not None
    report = done.proof.report
    flash, ram, duration = report.memory.flash, report.memory.ram.total, report.duration
    upper = duration.range_ms[1] if duration.range_ms is not None else duration.milliseconds
    return {"flash": None if flash is None else flash.total, "ram": ram, "ms": upper}


def _results(subject: Subject, others: DataSet, network: Network, done: Evaluation) -> Iterator[ResultPart]:
    """Yield the float model, the one with int8 throughout and the chosen one, on samples that chose nothing."""
    floating = subject.evaluation(subject.form.normal, others)
    real = in_real_numbers(subject.form.outputs, floating.outputs)
    yield _result(subject, "float", floating, None)
    uniform = subject.network((0,) * len(subject.blocks))
    for what, model, own in (("int8", uniform, subject.evaluation(uniform, others)), ("chosen", network, done)):
        yield _result(subject, what, own, noise(real, in_real_numbers(model.outputs, own.outputs)))


def _result(subject: Subject, what: str, done: Evaluation, noise_: float | None) -> ResultPart:
    if not subject.metric:
        return ResultPart(what=what, metric=None, noise=noise_)
    metric = done.metric(subject.metric)
    return ResultPart(what=what, metric=metric.value, low=metric.low, high=metric.high, noise=noise_)
