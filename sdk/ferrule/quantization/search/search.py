# SPDX-License-Identifier: Apache-2.0
"""Searches the precision of each block of layers: the best metric within a budget of a board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.budget import begun
from ferrule.codegen.digest import digest
from ferrule.errors import FerruleError
from ferrule.evaluation.data import DataSet, DataSettings
from ferrule.evaluation.evaluate import Evaluation
from ferrule.formats import ModelFile, to_tflite
from ferrule.network import Network
from ferrule.network.samples import in_real_numbers
from ferrule.progress import Step
from ferrule.quantization.library import check_installed
from ferrule.quantization.outputs import noise
from ferrule.quantization.precision import Precision
from ferrule.quantization.search.budget import BoardBudget
from ferrule.quantization.search.explore import Setting, explore
from ferrule.quantization.search.trial import LEVELS, Subject
from ferrule.quantization.search.trials import Candidate, SearchRequest, Source, Trials, objectives
from ferrule.report.base import part_of
from ferrule.report.document import ModelPart
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.search_document import BlockPart, ResultPart, SearchDocument, TrialPart
from ferrule.report.sections import number
from ferrule.report.surroundings import environment
from ferrule.report.tradeoff import front

_BUILT = 5
"""The settings, the best first, that are built to see whether they keep the budget."""


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


def search(
    model: Network | ModelFile, data: Source, request: SearchRequest, settings: DataSettings | None = None
) -> FoundModel:
    """Return the model of the best metric that keeps a budget, with the front of what was tried.

    Half of the samples, drawn with the seed, are those by which ranges and settings are chosen; metrics are reported
    on the others. The costs of a trial are planned; the chosen model is built and run on the board, and if it then
    exceeds the budget, the next best one is.

    Raises:
        InputError: the data cannot be read or does not fit the model, or has fewer than four samples.
        FerruleError: as `quantize` and `evaluate`.
    """
    return search_models([(model, data)], request, settings)


@begun()
def search_models(
    models: Sequence[tuple[Network | ModelFile, Source]], request: SearchRequest, settings: DataSettings | None = None
) -> FoundModel:
    """Return what `search` does, where the choice is also one among models, such as those for several resolutions.

    Each has samples of its own, which are the same ones as this model gets them: as many, with the same labels.

    Raises:
        InputError: as `search`, or the models have different numbers of samples.
        FerruleError: as `search`, or two models have the same name.
    """
    check_installed()
    with Trials.opened(models, request, settings) as trials:
        tried = _judged(_tried(trials, request), request.budget, trials.metric)
        found = _best(trials, tried, request)
        chosen = found.candidate
        parts = tuple(
            ModelPart(name=each.network.name, digest=digest(each.network), macs=each.network.macs())
            for each in trials.candidates
        )
        return FoundModel(
            ferrule_version=VERSION,
            model=parts[trials.candidates.index(chosen)],
            models=parts if len(parts) > 1 else (),
            data=chosen.samples.part,
            board=request.job.load_board().name,
            budget=request.budget.limits,
            metric=trials.metric,
            seed=request.seed,
            chosen_by=len(chosen.subject.data),
            reported_on=len(chosen.others),
            trials=tried,
            environment=environment(),
            blocks=found.blocks,
            results=found.results,
            measured=found.measured,
            rejected=found.rejected,
            proof=found.proof,
            network=found.network,
        )


def _tried(trials: Trials, request: SearchRequest) -> list[TrialPart]:
    """Return the trials that the search makes, in their order."""
    made: list[TrialPart] = []
    phase = "trying settings"

    def evaluate(settings: Sequence[Setting]) -> list[tuple[float, ...] | None]:
        found: dict[Setting, TrialPart] = {}
        for setting, trial in trials.of(settings):
            found[setting] = trial
            request.progress(Step(phase=phase, done=len(made) + len(found), total=request.evaluations))
        made.extend(found[setting] for setting in settings)
        return [objectives(found[setting], request.budget, trials.metric) for setting in settings]

    request.progress(Step(phase=phase))
    explore(trials.places, len(LEVELS), evaluate, request.evaluations, request.seed)
    return made


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

    candidate: Candidate
    blocks: tuple[BlockPart, ...]
    results: tuple[ResultPart, ...] = ()
    measured: dict[str, float] = field(default_factory=dict)
    proof: EvaluationDocument | None = None
    network: Network | None = None
    rejected: tuple[str, ...] = ()


def _best(trials: Trials, tried: Sequence[TrialPart], request: SearchRequest) -> _Chosen:
    """Return the best trial that keeps the budget as planned, and when it is built and run."""
    within = [trial for trial in tried if not trial.exceeds and not trial.problem]
    scored = [(point, trial) for trial in within if (point := objectives(trial, request.budget, trials.metric))]
    ranked = [trial for _, trial in sorted(scored, key=lambda each: each[0])]
    rejected: list[str] = []
    candidates = {each.network.name: each for each in trials.candidates}
    for trial in ranked[:_BUILT]:
        candidate = candidates[trial.model]
        subject, others = candidate.subject, candidate.others
        network = subject.network([LEVELS.index(Precision(name)) for name in trial.setting])
        what = f"{trial.model}, {trial.text}" if len(candidates) > 1 else trial.text
        request.progress(Step(phase=f"building and running {what}"))
        done = subject.evaluation(network, others, job=request.job)
        measured = _measured(done)
        exceeded = request.budget.exceeded(measured)
        if exceeded:
            taken = (f"{kind} {number(measured[kind]) or 'is not known'}" for kind in exceeded)
            rejected.append(f"{what}: {', '.join(taken)}")
            continue
        kinds = {kind: value for kind, value in measured.items() if value is not None and kind in request.budget.limits}
        return _Chosen(
            candidate=candidate,
            blocks=_blocks(subject, trial.setting),
            results=tuple(_results(subject, others, network, done)),
            measured=kinds,
            proof=done.document,
            network=network,
            rejected=tuple(rejected),
        )
    first = trials.candidates[0]
    blocks = _blocks(first.subject, ("",) * len(first.subject.blocks))
    return _Chosen(candidate=first, blocks=blocks, rejected=tuple(rejected))


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
