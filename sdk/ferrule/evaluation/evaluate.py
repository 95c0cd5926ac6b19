# SPDX-License-Identifier: Apache-2.0
"""Evaluates a model on a user's data: all samples by the fastest exact way, a seeded part of them on a board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

import msgspec
import numpy as np

from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.budget import begun
from ferrule.codegen.digest import digest
from ferrule.emulation import EngineOptions, fitting_engine
from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.answers import Answers, on_host
from ferrule.evaluation.data import DataSet, DataSettings, open_data
from ferrule.evaluation.float_model import check_float, float_answers, largest_difference
from ferrule.evaluation.intervals import check_confidence
from ferrule.evaluation.metrics import (
    CONFUSION,
    LOWER,
    METRICS,
    OF_CLASSES,
    Confidence,
    Scored,
    check_metric,
    confusion,
    default_metrics,
    label_parts,
)
from ferrule.evaluation.on_board import Engine
from ferrule.evaluation.own_metric import OwnMetric, load_metric, own_metric
from ferrule.evaluation.proof import all_on_board, prove
from ferrule.evaluation.scoring import (
    Score,
    by_sequence,
    check_reconstruction,
    is_numbered,
    output_index,
    scores_of,
    widened,
    worst_reconstructed,
    worst_samples,
)
from ferrule.facade import check_engine, compile  # noqa: A004
from ferrule.facade.networks import network_of
from ferrule.firmware import Job, JobKeywords, job_from
from ferrule.formats import ModelFile
from ferrule.graph import Array
from ferrule.interface import either, name_of, option
from ferrule.network import Network
from ferrule.network.samples import in_real_numbers
from ferrule.progress import Progress, say_nothing
from ferrule.report import Verdict
from ferrule.report.document import ModelPart
from ferrule.report.evaluation_document import (
    ConfusionPart,
    EvaluationDocument,
    FloatPart,
    LabelPart,
    MetricPart,
    PathPart,
    ProofPart,
    WorstPart,
)
from ferrule.report.evidence import NO_EVIDENCE, Evidence, evidence_of
from ferrule.report.notebooks import shown_in_notebook
from ferrule.report.surroundings import environment

if TYPE_CHECKING:
    from pandas import DataFrame

CONFUSION_LABELS = 40
"""The most labels for which a confusion matrix is made unasked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(EvaluationDocument):
    """The results of an evaluation: what its JSON has, by the same names, and the outputs."""

    outputs: list[Array] = field(repr=False)
    """The model's outputs for all samples, stored values, joined along the first axis."""
    notes: tuple[str, ...] = ()
    """What is worth knowing about how the samples ran, such as layers that CpuAcc refuses."""

    @classmethod
    def of(cls, document: EvaluationDocument, outputs: list[Array], notes: tuple[str, ...]) -> Evaluation:
        """Return an evaluation of a document, the outputs and the notes."""
        parts = {each.name: getattr(document, each.name) for each in fields(EvaluationDocument)}
        return cls(**parts, outputs=outputs, notes=notes)

    @property
    def document(self) -> EvaluationDocument:
        """The evaluation without the outputs and the notes, as `to_json` writes it."""
        return EvaluationDocument(**{each.name: getattr(self, each.name) for each in fields(EvaluationDocument)})

    def metric(self, name: str) -> MetricPart:
        """Return a metric by name; KeyError if there is none."""
        return {part.name: part for part in self.metrics}[name]

    @property
    def verdict(self) -> Verdict | None:
        """The comparison of the fast path with the board and the numpy reference; None without a board."""
        return None if self.proof is None else self.proof.verdict

    def to_json(self) -> str:
        """Return the document as indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self.document), indent=2).decode()

    @override
    def to_dataframe(self) -> DataFrame:
        """Return the metrics and labels as a pandas data frame; MissingToolError if pandas is not installed."""
        return self.document.to_dataframe()

    @override
    def _repr_html_(self) -> str:
        return shown_in_notebook(self.document)

    @override
    def __repr__(self) -> str:
        return repr(self.document).replace("EvaluationDocument", "Evaluation", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What is asked of the answers."""

    metrics: tuple[str, ...]
    own: dict[str, OwnMetric]
    score: Score
    output: int
    confidence: Confidence
    worst: int
    classes: tuple[str, ...] = ()


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
    given = network_of(network)
    other = None if float_model is None else network_of(float_model)
    question = _question(given, metrics, score, output, Confidence(level=confidence, seed=seed), worst)
    chosen = job_from(job, keywords) if job is not None or keywords else None
    _check_numbers(proof, jobs, engine, named=chosen is not None, on_board=on_board)
    runner = None
    if chosen is not None:
        name = engine or fitting_engine(chosen.load_board())
        runner = Engine(name=name, options=options or EngineOptions(), timeout_s=timeout_s)
        check_engine(name, chosen, runner.options)
    if other is not None:
        check_float(given, other)

    def opened(network: Network) -> DataSet:
        assert not isinstance(data, DataSet)
        given_settings = settings or DataSettings()
        return open_data(
            data, labels, network.inputs, network.outputs, given_settings, limit, sequence=sequence, seed=seed
        )

    samples = _data_set(given, data, labels, sequence, limit) if isinstance(data, DataSet) else opened(given)
    question = _asked(given, samples, question)
    answers = on_host(given, samples, progress, reconstructed=_reconstructed(question))
    scored = _scored(given, samples, answers, question)  # labels that do not fit end it before anything is built
    paths, proved = [answers.path], None
    warnings: tuple[str, ...] = ()
    if chosen is not None and runner is not None:
        firmware = compile(given, chosen, engine=runner.name, progress=progress)
        proved, path = prove(firmware, runner, samples, answers, proof, seed, progress)
        paths.append(path)
        warnings = firmware.warnings
        if on_board:
            answers, proved = all_on_board(firmware, runner, samples, answers, proved, jobs, progress)
            scored = _scored(given, samples, answers, question)
            paths.append(answers.path)
    floating = None
    if other is not None:
        reopen = None if isinstance(data, DataSet) else opened
        floating, path = _compare_float(given, other, samples, reopen, answers, scored, question, progress)
        paths.append(path)
    metrics_ = _metric_parts(given, answers, scored, question)
    tables = _tables(scored, answers, question)
    document = EvaluationDocument(
        ferrule_version=VERSION,
        model=_model_part(given),
        data=samples.part,
        metrics=metrics_,
        paths=tuple(paths),
        float_model=floating,
        proof=proved,
        evidence=_evidence(answers, _compares(metrics_, tables, floating, proved)),
        environment=environment(),
        **tables,
    )
    return Evaluation.of(document, answers.outputs, (*answers.notes, *warnings))


def _question(
    network: Network, metrics: Sequence[str], score: str, output: str | None, confidence: Confidence, worst: int
) -> _Question:
    if isinstance(metrics, str):
        raise FerruleError(f"metrics is {metrics!r}, expected a list", hint=f"write metrics=[{metrics!r}]")
    check_confidence(confidence.level)
    if confidence.seed < 0:
        raise FerruleError(f"the seed is {confidence.seed}, expected a number from 0 on")
    names = tuple(dict.fromkeys(metrics))
    for name in names:
        check_metric(name)
    for info in network.inputs:
        if not info.shape:
            raise InputError(f"input '{info.name}' is a scalar, which has no axis along which there can be samples")
    if score not in set(Score):
        raise FerruleError(f"the score is '{score}', expected {' or '.join(Score)}")
    return _Question(
        metrics=names,
        own={name: load_metric(name) for name in names if ":" in name},
        score=Score(score),
        output=output_index(network.outputs, output),
        confidence=confidence,
        worst=worst,
    )


def _check_numbers(proof: int, jobs: int, engine: str | None, *, named: bool, on_board: bool) -> None:
    for name, number in (("proof", proof), ("jobs", jobs)):
        if number < 1:
            raise FerruleError(f"{name} is {number}, expected at least 1")
    if on_board and not named:
        raise FerruleError("all samples are to run on a board, and no board is named", hint=option("board", "NAME"))
    if jobs > 1 and not on_board:
        raise FerruleError(
            "several jobs are for running all samples on the board", hint=either("--on-board all", "on_board=True")
        )
    if jobs > 1 and engine == "serial":
        raise FerruleError("a real board runs one sample at a time, so there can be only one job")


def _data_set(network: Network, data: DataSet, labels: str | None, sequence: str | None, limit: int | None) -> DataSet:
    """Return an open data set; FerruleError if it is for other inputs, or something else is to be opened with it."""
    if labels is not None or sequence is not None or limit is not None:
        raise FerruleError("an open DataSet has its labels, sequences and limit already: give them to open_data")
    if data.inputs != tuple(network.inputs):
        raise InputError("the DataSet was opened for the inputs of another model", hint="open it for this model")
    return data


def _asked(network: Network, data: DataSet, question: _Question) -> _Question:
    """Return the question with what the data adds to it.

    Raises:
        FerruleError: there are no samples or labels, sequences have no meaning, or the score does not fit the model.
    """
    if not len(data):
        raise InputError(f"{data.part.source} has no samples")
    if data.labels is None and question.metrics:
        raise InputError(
            f"{data.part.source} has no labels, and metrics compare with labels", hint=f"give {name_of('labels')}"
        )
    reconstructs = question.score is Score.RECONSTRUCTION
    if reconstructs:
        check_reconstruction(network.inputs, network.outputs[question.output])
    elif data.sequences is not None and not network.states:
        raise InputError(
            f"{data.part.source} has sequences, and network '{network.name}' has no state that samples could share",
            hint=f"leave out {name_of('sequence')}",
        )
    _check_labels(network, data, question)
    metrics = question.metrics
    if reconstructs and set(metrics) - {"auc", *question.own}:
        raise FerruleError(
            'with the score "reconstruction", samples are ranked and not classified: the metric is auc',
            hint=either("leave out --metric, or give --metric auc", 'leave out metrics, or give metrics=["auc"]'),
        )
    if reconstructs and not metrics and data.labels is not None:
        metrics = ("auc",)
    return _Question(
        metrics=metrics,
        own=question.own,
        score=question.score,
        output=question.output,
        confidence=question.confidence,
        worst=question.worst,
        classes=data.classes,
    )


def _check_labels(network: Network, data: DataSet, question: _Question) -> None:
    """Raise InputError, before anything is computed, if the labels do not fit the model's output."""
    info = network.outputs[question.output]
    if data.labels is None or (question.score is Score.OUTPUT and is_numbered(info)):
        return
    labels = data.labels.values[list(data.order)]
    size = 1 if question.score is Score.RECONSTRUCTION else info.elements
    scores = np.broadcast_to(np.float32(0), (len(labels), size))
    _comparable(scores, labels, tuple(map(data.source.name, data.order)), data, question)


def _reconstructed(question: _Question) -> int | None:
    return question.output if question.score is Score.RECONSTRUCTION else None


def _scored(network: Network, data: DataSet, answers: Answers, question: _Question) -> Scored | None:
    """Return what metrics compare; None without labels. InputError if the labels do not fit."""
    if answers.labels is None:
        return None
    if answers.errors is not None:
        return _comparable(answers.errors[:, None], answers.labels, answers.names, data, question)
    info = network.outputs[question.output]
    scores = scores_of(info, answers.outputs[question.output], answers.samples)
    return _comparable(widened(scores, info, answers.labels), answers.labels, answers.names, data, question)


def _comparable(scores: Array, labels: Array, names: tuple[str, ...], data: DataSet, question: _Question) -> Scored:
    scored = Scored(scores=scores, labels=labels, names=names)
    if question.score is Score.RECONSTRUCTION:
        if data.sequences is not None:
            scored = by_sequence(scored, data.sequences[list(data.order)])
        scored.expected()
        return scored
    computed = _computed(scored, question)
    if computed & OF_CLASSES:
        scored.expected()
    if computed & LOWER:
        scored.targets()
    return scored


def _computed(scored: Scored, question: _Question) -> set[str]:
    """Return the names of the metrics."""
    return set(question.metrics or default_metrics(scored))


def _metric_parts(
    network: Network, answers: Answers, scored: Scored | None, question: _Question
) -> tuple[MetricPart, ...]:
    if scored is None or answers.labels is None:
        return ()
    parts = []
    for name in question.metrics or default_metrics(scored):
        if name in question.own:
            outputs = in_real_numbers(network.outputs, answers.outputs)
            parts.append(own_metric(name, question.own[name], outputs, answers.labels, question.confidence))
        elif name != CONFUSION:
            parts.append(METRICS[name](scored, question.confidence))
    return tuple(parts)


def _tables(scored: Scored | None, answers: Answers, question: _Question) -> _Tables:
    """Return the recalls, the confusion matrix and the worst samples, as far as they have a meaning here."""
    if scored is None:
        return {}
    if question.score is Score.RECONSTRUCTION:
        return {"worst": worst_reconstructed(scored, question.worst)}
    computed = _computed(scored, question)
    if not computed & OF_CLASSES:
        targets = Scored(scores=scored.scores, labels=scored.targets()) if computed & LOWER else None
        return {} if targets is None else {"worst": worst_samples(targets, (), answers.names, question.worst)}
    if np.isnan(scored.scores).any():  # such samples have no predicted label
        return {"worst": worst_samples(scored, question.classes, answers.names, question.worst)}
    labels = label_parts(scored, question.classes)
    asked = CONFUSION in question.metrics
    return {
        "labels": labels,
        "confusion": confusion(scored, question.classes) if asked or len(labels) <= CONFUSION_LABELS else None,
        "worst": worst_samples(scored, question.classes, answers.names, question.worst),
    }


def _compare_float(
    network: Network,
    other: Network,
    data: DataSet,
    reopen: Callable[[Network], DataSet] | None,
    mine: Answers,
    scored: Scored | None,
    question: _Question,
    progress: Progress,
) -> tuple[FloatPart, PathPart]:
    answers, source = float_answers(network, other, data, reopen, progress, reconstructed=_reconstructed(question))
    its = _scored(other, data, answers, question)
    agreement = None
    if question.score is Score.OUTPUT and (scored is None or _computed(scored, question) & OF_CLASSES):
        agreement = _agreement(network, other, mine, answers, question.output)
    part = FloatPart(
        model=_model_part(other),
        metrics=_metric_parts(other, answers, its, question),
        agreement=agreement,
        largest_difference=largest_difference(
            in_real_numbers(network.outputs, mine.outputs), in_real_numbers(other.outputs, answers.outputs)
        ),
        inputs=source,
    )
    return part, answers.path


def _agreement(network: Network, other: Network, mine: Answers, its: Answers, output: int) -> float | None:
    """Return the share of samples for which both predict the same class.

    None if their outputs differ in size, or no sample has outputs without a NaN in both.
    """
    tables = [
        scores_of(net.outputs[output], each.outputs[output], each.samples)
        for net, each in ((network, mine), (other, its))
    ]
    if tables[0].shape != tables[1].shape:
        return None
    one, two = (Scored(scores=table, labels=np.zeros(len(table), np.int64)).predicted() for table in tables)
    known = ~(np.isnan(tables[0]).any(axis=1) | np.isnan(tables[1]).any(axis=1))  # a class needs an order
    return float(np.mean((one == two) & known)) if known.any() else None


def _compares(
    metrics: Sequence[MetricPart], tables: _Tables, floating: FloatPart | None, proof: ProofPart | None
) -> bool:
    """Return whether anything was compared with the outputs, and has a result."""
    known = any(part.value is not None for part in metrics) or bool(tables.get("labels"))
    near = floating is not None and (floating.agreement is not None or floating.largest_difference is not None)
    return known or near or (proof is not None and bool(proof.evidence))


def _evidence(answers: Answers, compared: bool) -> Evidence:
    if not compared:
        return NO_EVIDENCE
    return replace(evidence_of(answers.outputs, answers.outputs), samples=answers.samples)


def _model_part(network: Network) -> ModelPart:
    return ModelPart(name=network.name, digest=digest(network), macs=network.macs())
