# SPDX-License-Identifier: Apache-2.0
"""The trials of a search: made once for each setting, by this process or by the executors of sweeps."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.closing import Closing
from ferrule.codegen.digest import digest
from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.data import DataSet, DataSettings
from ferrule.evaluation.metrics import LOWER
from ferrule.evaluation.request import EvaluationRequest
from ferrule.evaluation.sweep.cluster import workers_for
from ferrule.evaluation.sweep.workers import WorkerLostError, Workers
from ferrule.firmware import Job
from ferrule.formats import ModelFile
from ferrule.interface import option
from ferrule.network import Network
from ferrule.progress import Progress, say_nothing
from ferrule.quantization.form import FloatForm
from ferrule.quantization.observation import observed
from ferrule.quantization.outputs import real_outputs
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import AUTO, parse_rules
from ferrule.quantization.search.budget import BoardBudget
from ferrule.quantization.search.explore import Setting
from ferrule.quantization.search.trial import Subject, attempt, blocks, names_of
from ferrule.quantization.search.trials_file import TrialsFile
from ferrule.quantization.unrolling import unrolled
from ferrule.report.search_document import TrialPart
from ferrule.running.networks import network_of

EVALUATIONS = 60
_TIE = 0.05
"""How much the noise counts beside a metric, which often is the same for many settings."""
_ATTEMPTS = 3
"""How often a trial is begun, at most, if its worker is lost."""
Source = str | Sequence[str] | DataSet
"""Samples, as for `EvaluationRequest`."""


@frozen
class SearchRequest:
    """What is searched, and how; docs/quantize.md describes the fields."""

    budget: BoardBudget
    job: Job
    labels: str | None = None
    metric: str | None = None
    """None for accuracy with labels, and for the noise of the outputs without."""
    io: Precision = Precision.INT8
    ranges: str = AUTO
    evaluations: int = EVALUATIONS
    """The most settings that are tried."""
    seed: int = 0
    limit: int | None = None
    jobs: int = 1
    """The number of processes that try settings; with a scheduler, that of its workers to wait for."""
    scheduler: str | None = None
    """The scheduler whose workers try settings, as for `ferrule sweep`; None for processes of this machine."""
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
class Candidate:
    """A model that is searched over, and its samples."""

    network: Network
    subject: Subject
    others: DataSet
    """The half of the samples by which nothing is chosen."""
    samples: DataSet
    key: str
    """The digest of all that trials depend on but their settings."""


class Trials(Closing):
    """The trials of models with settings, the first entry of which is the number of the model.

    Each is made once; those of the file of results are not made again.
    """

    def __init__(self, candidates: Sequence[Candidate], request: SearchRequest) -> None:
        """Open the file of results; raises as `TrialsFile` does."""
        self.candidates = tuple(candidates)
        self.made = 0
        """The number of trials that were made here."""
        self._request = request
        with ExitStack() as stack:
            self._file = stack.enter_context(TrialsFile(request.results))
            self._workers: Workers | None = None
            if request.jobs > 1 or request.scheduler is not None:
                self._workers = stack.enter_context(workers_for(request.scheduler, request.jobs))
            self._closing = stack.pop_all()

    @classmethod
    def opened(
        cls,
        models: Sequence[tuple[Network | ModelFile, Source]],
        request: SearchRequest,
        settings: DataSettings | None = None,
    ) -> Trials:
        """Return the trials of models, each with samples of its own.

        Raises:
            InputError: data cannot be read or do not fit the model, have fewer than four samples, or differ in number.
            FerruleError: two models have one name; or as `quantize` and `evaluate`.
        """
        candidates = [_candidate(network_of(model), data, request, settings) for model, data in models]
        first, names = candidates[0], [each.network.name for each in candidates]
        for index, each in enumerate(candidates):
            if names[index] in names[:index]:
                raise FerruleError(f"two models are named '{names[index]}', by which a report tells them apart")
            if len(each.samples) != len(first.samples):
                raise InputError(
                    f"{each.samples.part.source} has {len(each.samples)} samples, and {first.samples.part.source} has "
                    f"{len(first.samples)}: models are compared by the same samples"
                )
        return cls(candidates, request)

    @property
    def metric(self) -> str:
        """By which settings are judged; empty for the noise of the outputs."""
        return self.candidates[0].subject.metric

    @property
    def places(self) -> tuple[int, ...]:
        """The number of blocks of each model."""
        return tuple(len(each.subject.blocks) for each in self.candidates)

    def of(self, settings: Sequence[Setting]) -> Iterator[tuple[Setting, TrialPart]]:
        """Yield the trials of settings, those that are known first, and the others as they end."""
        missing = []
        for setting in settings:
            candidate, levels = self.candidates[setting[0]], setting[1:]
            trial = self._file.known(candidate.key, names_of(levels))
            if trial is None:
                missing.append(setting)
            else:
                yield setting, replace(trial, model=candidate.network.name)
        for setting, trial in self._attempts(missing):
            candidate = self.candidates[setting[0]]
            named = replace(trial, model=candidate.network.name)
            self._file.add(candidate.key, named)
            self.made += 1
            yield setting, named

    @override
    def close(self) -> None:
        self._closing.close()

    def _attempts(self, settings: Sequence[Setting]) -> Iterator[tuple[Setting, TrialPart]]:
        """Yield trials as they end; one whose worker is lost is begun again."""
        if self._workers is None:
            yield from ((each, attempt(self.candidates[each[0]].subject, each[1:])) for each in settings)
            return
        waiting = list(settings)
        for begun in range(1, _ATTEMPTS + 1):
            futures = {self._submitted(self._workers, each): each for each in waiting}
            waiting = []
            for future in as_completed(futures):
                setting = futures[future]
                try:
                    yield setting, future.result()
                except WorkerLostError as error:
                    if begun < _ATTEMPTS:
                        waiting.append(setting)
                        continue
                    problem = f"it was begun {begun} times, and its worker was lost each time; the last: {error}"
                    yield setting, TrialPart(setting=names_of(setting[1:]), problem=problem)

    def _submitted(self, workers: Workers, setting: Setting) -> Future[TrialPart]:
        return workers.submit((), attempt, self.candidates[setting[0]].subject, setting[1:])


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


def _candidate(network: Network, data: Source, request: SearchRequest, settings: DataSettings | None) -> Candidate:
    (rule,), form = parse_rules(request.ranges, None), FloatForm.of(unrolled(network))
    samples = EvaluationRequest(
        data=data, labels=request.labels, settings=settings, limit=request.limit, seed=request.seed
    ).opened(form.normal)
    if len(samples) < 4:
        raise InputError(f"{samples.part.source} has {len(samples)} samples, expected at least 4: half of them choose")
    chosen, others = _halves(samples, request.seed)
    everything = {layer.name: Precision.INT8 for layer in form.normal.layers}
    observation = observed(form.normal, chosen, [rule], form.names, request.progress)
    subject = Subject(
        form=form,
        ranges=observation.ranges(rule, everything),
        blocks=blocks(form.simple),
        io=request.io,
        job=request.job,
        data=chosen,
        metric=request.metric or ("accuracy" if samples.labels is not None else ""),
        outputs=real_outputs(form.normal, chosen, request.progress, "float model"),
    )
    return Candidate(network=network, subject=subject, others=others, samples=samples, key=_key(subject, request))


def _halves(data: DataSet, seed: int) -> tuple[DataSet, DataSet]:
    """Return two halves of the samples, drawn with a seed; each keeps their order."""
    places = np.random.default_rng(seed).permutation(len(data))
    middle = (len(data) + 1) // 2
    halves = (sorted(int(each) for each in part) for part in (places[:middle], places[middle:]))
    first, second = map(data.only, halves)
    return first, second


def _key(subject: Subject, request: SearchRequest) -> str:
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
