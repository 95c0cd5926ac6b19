# SPDX-License-Identifier: Apache-2.0
"""Evaluates a model on a user's data: all samples by the fastest exact way, a seeded part of them on a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import TypedDict, Unpack

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.budget import begun
from ferrule.codegen.digest import digest
from ferrule.emulation import Clock, EngineOptions
from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.custom_metric import CustomMetric, custom_metric, load_metric
from ferrule.evaluation.data import DataSet, DataSettings
from ferrule.evaluation.float_model import FROM_DATA, check_float, float_losses, float_predictions, largest_difference
from ferrule.evaluation.losses import COMPARED
from ferrule.evaluation.metrics import (
    CONFUSION,
    LOWER,
    METRICS,
    OF_CLASSES,
    Scored,
    confusion,
    default_metrics,
    label_parts,
)
from ferrule.evaluation.predictions import Predictions, on_host
from ferrule.evaluation.proof import all_on_board, prove
from ferrule.evaluation.request import EvaluationRequest
from ferrule.evaluation.scoring import (
    by_sequence,
    check_reconstruction,
    flipped_samples,
    is_numbered,
    output_index,
    scores_of,
    widened,
    worst_reconstructed,
    worst_samples,
)
from ferrule.firmware import Job, JobKeywords, job_from
from ferrule.formats import ModelFile
from ferrule.graph import Array
from ferrule.interface import either, name_of
from ferrule.network import Network
from ferrule.network.samples import in_real_numbers
from ferrule.progress import Progress, say_nothing
from ferrule.report import Verdict
from ferrule.report.base import part_of
from ferrule.report.document import ModelPart
from ferrule.report.evaluation_document import (
    ConfusionPart,
    EvaluationDocument,
    FlipPart,
    FloatPart,
    LabelPart,
    MetricPart,
    PathPart,
    ProofPart,
    WorstPart,
)
from ferrule.report.evidence import NO_EVIDENCE, Evidence, evidence_of
from ferrule.report.surroundings import environment
from ferrule.running import RunRequest, compile  # noqa: A004
from ferrule.running.networks import network_of
from ferrule.timing.usage import Battery, Rate

_FLIPS = 20
"""The most samples that are listed whose label differs from the float model's."""
CONFUSION_LABELS = 40
"""The most labels for which a confusion matrix is made unasked."""


@frozen
class Evaluation(EvaluationDocument):
    """The results of an evaluation: what its JSON has, by the same names, and the outputs."""

    outputs: list[Array] = field(repr=False)
    """The model's outputs for all samples, stored values, joined along the first axis."""
    notes: tuple[str, ...] = ()
    """What is worth knowing about how the samples ran, such as layers that CpuAcc refuses."""

    @property
    @override
    def document(self) -> EvaluationDocument:
        """The evaluation without the outputs and the notes."""
        return part_of(EvaluationDocument, self)

    def metric(self, name: str) -> MetricPart:
        """Return a metric by name; KeyError if there is none."""
        return {part.name: part for part in self.metrics}[name]

    @property
    def verdict(self) -> Verdict | None:
        """The comparison of the fast path with the board and the numpy reference; None without a board."""
        return None if self.proof is None else self.proof.verdict

    __repr__ = EvaluationDocument.__repr__


class _Tables(TypedDict, total=False):
    labels: tuple[LabelPart, ...]
    confusion: ConfusionPart | None
    worst: tuple[WorstPart, ...]


@begun()
def evaluate(
    network: Network | ModelFile,
    data: str | Sequence[str] | DataSet,
    labels: str | None = None,
    *,
    metrics: Sequence[str] = (),
    float_model: Network | ModelFile | None = None,
    compared: int = COMPARED,
    settings: DataSettings | None = None,
    limit: int | None = None,
    sequence: str | None = None,
    score: str = "output",
    output: str | None = None,
    proof: int = 20,
    seed: int = 0,
    confidence: float = 0.95,
    worst: int = 10,
    on_board: bool = False,
    jobs: int = 1,
    engine: str | None = None,
    options: EngineOptions | None = None,
    timeout_s: float = 60.0,
    clock: Clock | None = None,
    deadline_s: Fraction | float | None = None,
    rate: Rate | None = None,
    battery: Battery | None = None,
    progress: Progress = say_nothing,
    job: Job | None = None,
    **keywords: Unpack[JobKeywords],
) -> Evaluation:
    """Run a network on all samples of a data set and return its metrics.

    `data`, `labels`, `sequence` and `limit` are as for `ferrule evaluate`: files, folders or FILE.py:function; or
    `data` is an open `DataSet`. All samples run on the host. With a job, or its fields as keywords, at least
    `board=...`, `proof` samples, drawn with `seed`, also run on the board, and their outputs are compared with the
    host's and with the numpy reference. With `on_board`, all samples run on the board, too, in `jobs` processes, and
    the metrics are of its outputs. docs/evaluation.md describes all parameters.

    Raises:
        InputError: the data or the labels do not fit the model; the message names the file and the place.
        FerruleError: a parameter is wrong; or as `ferrule.compile` and `Firmware.run`.
    """
    run = RunRequest(
        engine=engine,
        options=options or EngineOptions(),
        timeout_s=timeout_s,
        clock=clock,
        deadline_s=deadline_s,
        rate=rate,
        battery=battery,
        progress=progress,
    )
    request = EvaluationRequest(
        data=data,
        labels=labels,
        settings=settings,
        limit=limit,
        sequence=sequence,
        metrics=metrics,
        float_model=None if float_model is None else network_of(float_model),
        compared=compared,
        score=score,
        output=output,
        confidence=confidence,
        seed=seed,
        worst=worst,
        job=job_from(job, keywords) if job is not None or keywords else None,
        proof=proof,
        on_board=on_board,
        jobs=jobs,
        run=run,
    )
    return evaluated(network_of(network), request)


def evaluated(network: Network, request: EvaluationRequest) -> Evaluation:
    """Evaluate a network as requested; see `evaluate`."""
    job, progress = request.job, request.run.progress
    for info in network.inputs:
        if not info.shape:
            raise InputError(f"input '{info.name}' is a scalar, which has no axis along which there can be samples")
    if job is not None:
        engine = request.run.engine_for(job.load_board())
        request = replace(request, run=replace(request.run, engine=engine.name))
    if request.float_model is not None:
        check_float(network, request.float_model)
    scorer = _Scorer.of(network, request)
    data = scorer.data
    predictions = on_host(network, data, progress, reconstructed=scorer.reconstructed)
    scored = scorer.scored(predictions)  # labels that do not fit end it before anything is built
    paths, proved = [predictions.path], None
    warnings: tuple[str, ...] = ()
    if job is not None:
        firmware = compile(network, job, engine=request.run.engine, progress=progress)
        proved, path = prove(firmware, request, data, predictions)
        paths.append(path)
        warnings = firmware.warnings
        if request.on_board:
            predictions, proved = all_on_board(firmware, request, data, predictions, proved)
            scored = scorer.scored(predictions)
            paths.append(predictions.path)
    floating = None
    if request.float_model is not None:
        floating, path = scorer.compared(request.float_model, predictions, scored)
        paths.append(path)
    metrics, tables = scorer.metric_parts(predictions, scored), scorer.tables(predictions, scored)
    document = EvaluationDocument(
        ferrule_version=VERSION,
        model=_model_part(network),
        data=data.part,
        metrics=metrics,
        paths=tuple(paths),
        float_model=floating,
        proof=proved,
        evidence=_evidence(predictions, metrics, tables, floating, proved),
        environment=environment(),
        **tables,
    )
    notes = (*predictions.notes, *warnings)
    return part_of(Evaluation, document, outputs=predictions.outputs, notes=notes)


@frozen
class _Scorer:
    """Scores the predictions of a network to the samples of a data set as requested."""

    network: Network
    data: DataSet
    request: EvaluationRequest
    metrics: Sequence[str]
    own: Mapping[str, CustomMetric]
    output: int
    """The index of the output that is scored."""

    @classmethod
    def of(cls, network: Network, request: EvaluationRequest) -> _Scorer:
        """Return the scorer of a request.

        Raises:
            FerruleError: there are no samples or labels, sequences have no meaning, the score or the labels do not fit
                the model, or a metric does not exist.
        """
        own = {name: load_metric(name) for name in request.metrics if ":" in name}
        output = output_index(network.outputs, request.output)
        data, metrics = request.opened(network), request.metrics
        if not len(data):
            raise InputError(f"{data.part.source} has no samples")
        if data.labels is None and metrics:
            raise InputError(
                f"{data.part.source} has no labels, and metrics compare with labels", hint=f"give {name_of('labels')}"
            )
        if request.reconstructs:
            check_reconstruction(network.inputs, network.outputs[output])
            if data.labels is not None:
                metrics = metrics or ("auc",)
        elif data.sequences is not None and not network.states:
            raise InputError(
                f"{data.part.source} has sequences, and network '{network.name}' has no state that samples could share",
                hint=f"leave out {name_of('sequence')}",
            )
        scorer = cls(network=network, data=data, request=request, metrics=metrics, own=own, output=output)
        scorer.check_labels()
        if request.reconstructs and set(metrics) - {"auc", *own}:
            raise FerruleError(
                'with the score "reconstruction", samples are ranked and not classified: the metric is auc',
                hint=either("leave out --metric, or give --metric auc", 'leave out metrics, or give metrics=["auc"]'),
            )
        return scorer

    @property
    def reconstructed(self) -> int | None:
        """The index of the output whose difference from the input is the score, if it is."""
        return self.output if self.request.reconstructs else None

    def check_labels(self) -> None:
        """Raise InputError, before anything is computed, if the labels do not fit the model's output."""
        data, info = self.data, self.network.outputs[self.output]
        if data.labels is None or (not self.request.reconstructs and is_numbered(info)):
            return
        labels = data.labels.values[list(data.order)]
        size = 1 if self.request.reconstructs else info.elements
        scores = np.broadcast_to(np.float32(0), (len(labels), size))
        self._comparable(Scored(scores=scores, labels=labels, names=tuple(map(data.source.name, data.order))))

    def scored(self, predictions: Predictions) -> Scored | None:
        """Return what metrics compare; None without labels. InputError if the labels do not fit."""
        labels = predictions.labels
        if labels is None:
            return None
        if predictions.errors is not None:
            scores = predictions.errors[:, None]
        else:
            info = self.network.outputs[self.output]
            scores = widened(scores_of(info, predictions.outputs[self.output], predictions.samples), info, labels)
        return self._comparable(Scored(scores=scores, labels=labels, names=predictions.names))

    def _comparable(self, scored: Scored) -> Scored:
        if self.request.reconstructs:
            if self.data.sequences is not None:
                scored = by_sequence(scored, self.data.sequences[list(self.data.order)])
            scored.expected()
            return scored
        computed = self._computed(scored)
        if computed & OF_CLASSES:
            scored.expected()
        if computed & LOWER:
            scored.targets()
        return scored

    def _computed(self, scored: Scored) -> set[str]:
        """Return the names of the metrics."""
        return set(self.metrics or default_metrics(scored))

    def metric_parts(self, predictions: Predictions, scored: Scored | None) -> tuple[MetricPart, ...]:
        """Return the metrics; none without labels."""
        if scored is None or predictions.labels is None:
            return ()
        parts, confidence = [], self.request.intervals
        for name in self.metrics or default_metrics(scored):
            if name in self.own:
                outputs = in_real_numbers(self.network.outputs, predictions.outputs)
                parts.append(custom_metric(name, self.own[name], outputs, predictions.labels, confidence))
            elif name != CONFUSION:
                parts.append(METRICS[name](scored, confidence))
        return tuple(parts)

    def tables(self, predictions: Predictions, scored: Scored | None) -> _Tables:
        """Return the recalls, the confusion matrix and the worst samples, as far as they have a meaning here."""
        count, classes = self.request.worst, self.data.classes
        if scored is None:
            return {}
        if self.request.reconstructs:
            return {"worst": worst_reconstructed(scored, count)}
        computed = self._computed(scored)
        if not computed & OF_CLASSES:
            if not computed & LOWER:
                return {}
            targets = Scored(scores=scored.scores, labels=scored.targets())
            return {"worst": worst_samples(targets, (), predictions.names, count)}
        worst = worst_samples(scored, classes, predictions.names, count)
        if np.isnan(scored.scores).any():  # such samples have no predicted label
            return {"worst": worst}
        labels = label_parts(scored, classes)
        asked = CONFUSION in self.metrics or len(labels) <= CONFUSION_LABELS
        return {"labels": labels, "confusion": confusion(scored, classes) if asked else None, "worst": worst}

    def compared(self, other: Network, mine: Predictions, scored: Scored | None) -> tuple[FloatPart, PathPart]:
        """Return the comparison of the predictions with those of the float model, and how the latter ran."""
        reopen = None if isinstance(self.request.data, DataSet) else self.request.opened
        predictions, source = float_predictions(
            self.network, other, self.data, reopen, self.request.run.progress, reconstructed=self.reconstructed
        )
        its = replace(self, network=other)
        agreement, flips = None, None
        if not self.request.reconstructs and (scored is None or self._computed(scored) & OF_CLASSES):
            agreement, flips = self._agreement(other, mine, predictions, scored)
        count = min(self.request.compared, len(self.data))
        real = reopen(other) if reopen is not None and source == FROM_DATA else None
        losses, unmatched = float_losses(self.network, other, self.data, real, count, self.request.run.progress)
        part = FloatPart(
            model=_model_part(other),
            metrics=its.metric_parts(predictions, its.scored(predictions)),
            agreement=agreement,
            largest_difference=largest_difference(
                in_real_numbers(self.network.outputs, mine.outputs), in_real_numbers(other.outputs, predictions.outputs)
            ),
            inputs=source,
            flips=None if flips is None else len(flips),
            flipped=() if flips is None else tuple(flips[:_FLIPS]),
            losses=losses,
            compared=count,
            unmatched=unmatched,
        )
        return part, predictions.path

    def _agreement(
        self, other: Network, mine: Predictions, its: Predictions, scored: Scored | None
    ) -> tuple[float | None, list[FlipPart] | None]:
        """Return the share of samples for which both predict the same class, and the other samples.

        None if their outputs differ in size, or no sample has outputs without a NaN in both.
        """
        tables = [
            scores_of(network.outputs[self.output], each.outputs[self.output], each.samples)
            for network, each in ((self.network, mine), (other, its))
        ]
        if tables[0].shape != tables[1].shape:
            return None, None
        one, two = (Scored(scores=table, labels=np.zeros(len(table), np.int64)) for table in tables)
        known = ~(np.isnan(tables[0]).any(axis=1) | np.isnan(tables[1]).any(axis=1))  # a class needs an order
        if not known.any():
            return None, None
        expected = None if scored is None or not scored.are_classes else scored.expected()
        flips = flipped_samples(one, two, expected, self.data.classes, mine.names)
        return float(np.mean((one.predicted() == two.predicted()) & known)), flips


def _evidence(
    predictions: Predictions,
    metrics: Sequence[MetricPart],
    tables: _Tables,
    floating: FloatPart | None,
    proof: ProofPart | None,
) -> Evidence:
    """Return the counts of the outputs, if anything was compared with them and has a result."""
    known = any(part.value is not None for part in metrics) or bool(tables.get("labels"))
    near = floating is not None and (floating.agreement is not None or floating.largest_difference is not None)
    if not (known or near or (proof is not None and proof.evidence)):
        return NO_EVIDENCE
    return replace(evidence_of(predictions.outputs, predictions.outputs), samples=predictions.samples)


def _model_part(network: Network) -> ModelPart:
    return ModelPart(name=network.name, digest=digest(network), macs=network.macs())
