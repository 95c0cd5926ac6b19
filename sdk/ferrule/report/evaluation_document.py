# SPDX-License-Identifier: Apache-2.0
"""The results of `ferrule evaluate` as data. Its JSON Schema is generated from these types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.errors import FerruleError
from ferrule.graph import brief
from ferrule.interface import either, name_of, option, spelled
from ferrule.report.base import Case, Document, Measure, Outcome, Row, Rule, Suite, flat
from ferrule.report.document import ModelPart, Verdict
from ferrule.report.evidence import NO_EVIDENCE, Evidence
from ferrule.report.losses import LossPart, losses_sections
from ferrule.report.picture import EnvironmentPart, surroundings
from ferrule.report.run_document import ReportDocument
from ferrule.report.sections import (
    Align,
    Cell,
    Column,
    Conclusion,
    Facts,
    Interval,
    Only,
    Part,
    Section,
    State,
    Table,
    Text,
    interval,
    joined,
    names,
    numbers,
    page_part,
    part,
    plural,
    share,
)

EVALUATION_SCHEMA_VERSION = 3
NO_BOARD = f"evaluate it again on a board: {option('board', 'NAME')}"
"""The hint of formats that show the layers on a board, for a document without `proof`."""
BETTER = {"mae": "lower", "mse": "lower", "accuracy": "higher", "top5": "higher", "auc": "higher"}
"""By metric: which values are better, where a document does not state it."""
MOST_LABELS = 32
"""Labels of a confusion matrix that a page shows."""
_LABELS_LISTED = 20
_MISTAKES_LISTED = 20


@frozen
class DataPart:
    """The samples and their labels."""

    source: str
    """The file or folder as the user named it."""
    form: str
    """"npy", "npz", "images", "wav", "csv" or "generator"."""
    samples: int
    digest: str
    """SHA-256 of all samples, as the model's inputs, and of their labels."""
    labels: str = ""
    """The origin of the labels: a file, or "folders"; empty without labels."""
    preparation: tuple[str, ...] = ()
    """What was done to each sample, in order, such as "resize to 96x96, bilinear"."""


@frozen
class MetricPart:
    """One metric, over all samples."""

    name: str
    value: float | None
    """None if it is undefined for these samples, with the reason in `note`."""
    low: float | None = None
    """The ends of the confidence interval; None if there is none."""
    high: float | None = None
    confidence: float = 0.95
    method: str = ""
    """How the interval was computed, such as "Wilson" or "bootstrap, 1,000 resamples, seed 0"."""
    better: str = "higher"
    """"higher" or "lower"."""
    note: str = ""
    at_least: float | None = None
    """The limits that it was to keep, as `--fail-below` and `--fail-above` state them; None without one."""
    at_most: float | None = None
    failed: bool = False
    """Whether it does not keep a limit; a value that is undefined keeps none."""

    @property
    def broken_limit(self) -> str:
        """Which limit it does not keep, as a sentence's part; empty if it keeps all."""
        if not self.failed:
            return ""
        if self.value is None:
            return f"{self.name} is undefined: {self.note}"
        below = self.at_least is not None and self.value < self.at_least
        side, limit = ("below", self.at_least) if below else ("above", self.at_most)
        return f"{self.name} is {self.value:.6g}, {side} {limit:g}"

    @property
    def interval(self) -> str:
        """Its confidence interval in words; empty if there is none."""
        if self.low is None or self.high is None:
            return ""
        return f"{_number(self.low)} to {_number(self.high)} ({self.confidence:.4g})"

    def change_from(self, other: MetricPart) -> Cell | None:
        """Return by how much it differs from that of the float model, as worse where the intervals are apart."""
        if self.value is None or other.value is None:
            return None
        change = self.value - other.value
        ends = (self.low, self.high, other.low, other.high)
        known = [end for end in ends if end is not None]
        apart = len(known) == len(ends) and (known[1] < known[2] or known[3] < known[0])
        worse = apart and (change < 0) == (self.better == "higher")
        return Cell(f"{change:+.4f}, worse" if worse else f"{change:+.4f}", State.WARN if worse else None)

    @property
    def drawn(self) -> Interval | None:
        """Its value and interval on a scale that ends at 1, or a little above the largest of them."""
        return interval(self.name, self.value, self.low, self.high)

    def case(self) -> Case:
        """Return whether it is defined and keeps its limits."""
        case = Case(self.name, where=self.name)
        if self.failed:
            return case.failing(Rule.OVER_BUDGET, self.broken_limit)
        if self.value is None:
            text = f"it is undefined: {self.note}"
            return replace(case, outcome=Outcome.SKIPPED, rule=Rule.UNDEFINED_METRIC, text=text)
        return replace(case, text=joined(f"{self.value:.6g}", self.interval, self.method))


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}" if abs(value) < 1000 else f"{value:.6g}"


def metrics_table(
    title: str, metrics: Sequence[MetricPart], others: Sequence[MetricPart] = (), proof: ProofPart | None = None
) -> Table:
    """Return metrics with their intervals, beside them those of a float model, and what a board says of them."""
    floats = {part.name: part for part in others}
    board = "board" if proof is None else f"on {proof.report.build.board}"
    on_board = None if proof is None else Cell(proof.of_metrics, proof.verdict.state)
    return Table(
        title,
        (
            *names("metric"),
            *numbers("value"),
            Column("float model", Align.NUMBER, sparse=True),
            Column("change", Align.NUMBER, sparse=True),
            Column(board, Align.NAME, sparse=True, drop=2),
            Column("interval", Align.NAME, sparse=True, drop=4),
            Column("", Align.DRAWN, sparse=True),
            Column("interval of float", Align.NAME, only=Only.PAGES, sparse=True, drop=3),
            Column("by", sparse=True, drop=1),
        ),
        [
            (
                each.name,
                _number(each.value),
                None if other is None else _number(other.value),
                None if other is None else each.change_from(other),
                on_board,
                each.interval,
                each.drawn,
                "" if other is None else other.interval,
                each.method,
            )
            for each in metrics
            for other in (floats.get(each.name),)
        ],
    )


@frozen
class LabelPart:
    """The results for one label."""

    label: str
    samples: int
    recall: float | None
    precision: float | None


@frozen
class ConfusionPart:
    """How often each label was predicted for each label."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """A row for each expected label, a column for each predicted one."""

    def sections(self) -> Iterator[Section]:
        """Yield the matrix, unless it is too large for a page, and its most frequent mistakes.

        Raises:
            FerruleError: the matrix is no square.
        """
        size = len(self.labels)
        wrong = next((length for length in (len(self.counts), *map(len, self.counts)) if length != size), None)
        if wrong is not None:
            raise FerruleError(
                f"the document's confusion matrix has {size} labels, and {wrong} rows or columns of counts",
                hint="evaluate it again, and write the document again",
            )
        rows = list(enumerate(zip(self.labels, self.counts, strict=True)))
        has_it = spelled(either("--json", "the attribute confusion"))
        large = size > MOST_LABELS
        yield Table(
            "predicted label by #",
            (*numbers("#"), *names("expected"), *numbers(*(f"{index} " for index in range(size)))),
            [(str(index), label, *(count or "." for count in counts)) for index, (label, counts) in rows],
            shaded=True,
            instead=f"the terminal is too narrow for the confusion matrix of {size} labels: {has_it} has it",
            only=Only.TERMINAL if large else None,
        )
        if large:
            yield Text(f"{size:,} labels are too many for a matrix; the JSON document has it.", only=Only.PAGES)
        found = [
            (label, self.labels[column], count, share(count / (sum(counts) or 1)))
            for index, (label, counts) in rows
            for column, count in enumerate(counts)
            if count and column != index
        ]
        if found:
            columns = (*names("expected", "predicted"), *numbers("samples", "of the expected label"))
            most = sorted(found, key=lambda each: -each[2])[:_MISTAKES_LISTED]
            yield Table("the most frequent mistakes", columns, most, only=Only.PAGES)


@frozen
class WorstPart:
    """A sample with one of the worst results."""

    index: int
    name: str
    """The sample's file, or its place in the data."""
    expected: str
    predicted: str
    score: float | None
    """How bad it is, larger is worse: for classes, the margin by which the prediction beats the expected label; None,
    worse than all numbers, if the output has values that are not finite."""


@frozen
class FlipPart:
    """A sample for which the two models predict different labels."""

    index: int
    name: str
    expected: str
    """Empty without labels."""
    float_label: str
    label: str
    float_margin: float
    """By how much the float model's score for its label beats that for the other label, in real units."""
    margin: float
    """The same of this model, for its own label."""

    @property
    def effect(self) -> str:
        """Whether this model is right where the float model is not, or the other way round; empty without labels."""
        if not self.expected:
            return ""
        right = self.label == self.expected, self.float_label == self.expected
        return {(True, False): "gained", (False, True): "lost"}.get(right, "both wrong")


@frozen
class FloatPart:
    """The same evaluation of the model in float32."""

    model: ModelPart
    metrics: tuple[MetricPart, ...]
    agreement: float | None
    """Share of samples, 0 to 1, for which both models predict the same label; None without labels to predict."""
    largest_difference: float | None
    """The largest difference of an output in real units; None if the outputs have other shapes."""
    inputs: str = ""
    """Where its inputs come from: "the data", or "the quantised inputs, dequantised"."""
    flips: int | None = None
    """The number of samples for which the models predict different labels; None without labels to predict."""
    flipped: tuple[FlipPart, ...] = ()
    """Of these, those with the largest margins of the float model, at most 20."""
    losses: tuple[LossPart, ...] = ()
    """What inputs and layers lose whose tensors the float model has by name, in the order of execution."""
    compared: int = 0
    """The number of samples by which the losses were measured."""
    unmatched: int = 0
    """The number of layers that have none, since the float model has no such tensor, or values that are not finite."""

    @property
    def flip_table(self) -> Table | None:
        """The samples that flipped; None if there are none."""
        if not self.flipped:
            return None
        rows = [
            (
                each.name,
                each.expected,
                each.float_label,
                each.label,
                f"{each.float_margin:.4g}",
                f"{each.margin:.4g}",
                Cell(each.effect, State.WARN if each.effect == "lost" else None) if each.effect else None,
            )
            for each in self.flipped
        ]
        title = f"{plural(self.flips or 0, 'sample')} with another label than by the float model"
        if (self.flips or 0) > len(rows):
            title += f", the {len(rows)} with the largest margins of it"
        columns = (
            *names("sample"),
            Column("expected", Align.NAME, sparse=True),
            *names("float model", "this model"),
            *numbers("float margin", spare=1),
            *numbers("margin", spare=2),
            Column("effect", sparse=True),
        )
        return Table(title, columns, rows)

    @property
    def text(self) -> str:
        """How it compares, in words."""
        agreement = "" if self.agreement is None else f"same label for {self.agreement:.2%} of the samples"
        largest = self.largest_difference
        difference = "" if largest is None else f"outputs differ by up to {largest:.4g}"
        return joined(agreement, difference, self.inputs and f"inputs: {self.inputs}")


@frozen
class PathPart:
    """How the samples were computed."""

    where: str
    """Such as "CpuAcc on the host" or "mps2-an386 by unicorn"."""
    samples: int
    cpu_s: float
    """Processor seconds of all processes."""
    wall_s: float


@frozen
class ProofPart:
    """The comparison of the fast path with a board, on a sample of the data."""

    verdict: Verdict
    """Over the outputs of all these samples, between the fast path, the board and the numpy reference."""
    evidence: Evidence = NO_EVIDENCE
    """What the verdict rests on: a sample that several compare counts once."""
    samples: tuple[int, ...]
    """Indices into the data, drawn with `seed`; all samples if the data is no larger than the sample."""
    seed: int
    report: ReportDocument
    different: tuple[int, ...] = ()
    """The first samples of the data whose outputs differ, at most 20."""
    whole: bool = False
    """Whether, besides, all samples ran on the board and were compared with the fast path."""

    @property
    def text(self) -> str:
        """What was compared, in words."""
        board = f"{self.report.build.board} by {self.report.engine}"
        whole = "; all samples: host, board" if self.whole else ""
        return f"{plural(len(self.samples), 'sample')} (seed {self.seed}) compared: host, {board}, numpy{whole}"

    @property
    def of_metrics(self) -> str:
        """What it says of the metrics, in few words."""
        if self.whole:
            return f"{self.verdict.words}, all samples"
        return f"{self.verdict.words} on {plural(len(self.samples), 'sample')}"

    def cases(self) -> Iterator[Case]:
        """Yield whether the fast path and the board agree, and what is wrong with the calls of devices."""
        report, text = self.report, f"{self.text}: {self.verdict.words} ({self.evidence.text})"
        case = Case("proof", text=text, where=report.place)
        if self.verdict is Verdict.NOTHING_COMPARED:
            case = case.failing(Rule.NOTHING_COMPARED)
        elif self.verdict is Verdict.DIFFERENT:
            case = case.failing(Rule.DIFFERENT)
            if report.verdict is not Verdict.DIFFERENT:
                case = replace(case, where="fast path")
            elif report.first_difference is not None:
                case = replace(case, layer=report.first_difference.layer)
        yield case
        yield from (case for case in report.device_call_cases() if case.rule)
        yield from report.duration.cases(report.place)

    def sections(self) -> Iterator[Section]:
        """Yield what was compared, and the verdict."""
        yield Text(self.text, "proof")
        if self.different:
            yield Text(", ".join(map(str, self.different)), "samples that differ")
        duration = self.report.duration
        elapsed = duration.elapsed_fact()
        if elapsed is not None and duration.text:
            yield Text(f"{elapsed.value}{elapsed.note}", elapsed.label)
        yield from duration.remarks()
        noted = self.report.noted()
        for device in noted:
            yield from device.remarks(only=Only.TERMINAL)
        yield Text(self.evidence.text, "compared")
        yield from duration.conclusions()
        yield from (device.conclusion() for device in noted)
        board, samples = self.report.build.board, plural(len(self.samples), "sample")
        paths = f"on {samples}, the fast path, {board} and the numpy reference"
        sentence = f"Proved on {board} by {self.report.engine}: {paths} agree."
        if self.verdict is Verdict.DIFFERENT:
            sentence = f"The results do not hold for the board: {paths} do not agree."
        elif self.verdict is Verdict.NOTHING_COMPARED:
            sentence = f"On {board}, {self.evidence.nothing}."
        yield Conclusion(self.verdict.words, self.verdict.state, sentence)


@frozen
class EvaluationDocument(Document):
    """All results of one `ferrule evaluate`."""

    kind: str = "evaluation"
    schema_version: int = EVALUATION_SCHEMA_VERSION
    ferrule_version: str
    model: ModelPart
    data: DataPart
    metrics: tuple[MetricPart, ...]
    paths: tuple[PathPart, ...]
    labels: tuple[LabelPart, ...] = ()
    confusion: ConfusionPart | None = None
    worst: tuple[WorstPart, ...] = ()
    float_model: FloatPart | None = None
    """None unless a float model was given."""
    proof: ProofPart | None = None
    """None if no board was named."""
    evidence: Evidence = NO_EVIDENCE
    """The outputs that labels, a float model or a board were compared with; nothing without any of them."""
    environment: EnvironmentPart | None = None

    @override
    def measures(self) -> Iterator[Measure]:
        for metric in self.metrics:
            interval = None if metric.low is None or metric.high is None else (metric.low, metric.high)
            yield Measure(metric.name, metric.value, "metric", better=metric.better, interval=interval)
        if self.float_model is not None:
            yield Measure("agreement with float32", self.float_model.agreement, "metric", better="higher")
            yield Measure("flipped samples", self.float_model.flips, "metric")
        if self.proof is not None:
            yield Measure("proof", self.proof.verdict.value)
            yield from self.proof.report.measures()

    @override
    def table_rows(self) -> Iterator[Row]:
        groups = [("metric", self.model, self.metrics)]
        if self.float_model is not None:
            groups.append(("float metric", self.float_model.model, self.float_model.metrics))
        for row, model, metrics in groups:
            for metric in metrics:
                yield {"model": model.name, "row": row, "samples": self.data.samples, **flat(metric)}
        for label in self.labels:
            yield {"model": self.model.name, "row": "label", **flat(label, label="name")}

    @override
    def suite(self) -> Suite:
        cases = [metric.case() for metric in self.metrics]
        if self.proof is not None:
            cases += self.proof.cases()
        if not self.evidence:
            cases.append(
                Case("outputs", Outcome.FAILURE, Rule.NOTHING_COMPARED, self.evidence.nothing, where="evaluation")
            )
        return Suite(
            name=f"{self.model.name} with {self.data.source}",
            command="evaluate",
            model=self.model.name,
            file=self.model.file,
            cases=cases,
            properties={
                "model digest": self.model.digest,
                "data digest": self.data.digest,
                "samples": self.data.samples,
                **{f"metric {each.name}": each.value for each in self.metrics},
                "ferrule": self.ferrule_version,
            },
            seconds=sum(path.wall_s for path in self.paths),
        )

    @override
    def sections(self) -> Part:
        about = f"{self.data.samples:,} samples of {self.data.source}"
        return Part(
            self.model.name,
            (
                self._metrics(f"{self.model.name} on {about}"),
                part("Labels", *self._labels()),
                None if self.confusion is None else part("Confusion", *self.confusion.sections()),
                self._worst(),
                *self._remarks(),
                *self._explained(),
            ),
            what="Evaluation",
            about=about,
        )

    def _metrics(self, title: str) -> Part:
        notes = (Text(f"{each.name}: {each.note}") for each in self.metrics if each.note)
        if not self.metrics:
            return Part("Metrics", (Text(f"{title}: no metrics, since there are no labels"),))
        others = () if self.float_model is None else self.float_model.metrics
        return Part("Metrics", (metrics_table(title, self.metrics, others, self.proof), *notes))

    def against_float(self) -> Iterator[Section]:
        """Yield the metrics beside those of the float model, and what has changed."""
        yield self._metrics(f"{self.model.name} on {self.data.samples:,} samples of {self.data.source}")
        if self.float_model is not None:
            yield Text(self.float_model.text, f"float model {self.float_model.model.name}")
            yield from filter(None, [part("Flipped samples", self.float_model.flip_table)])

    def _labels(self) -> Iterator[Section]:
        """Yield the tables by label: a terminal has those with the least recall."""
        ranked = sorted(self.labels, key=lambda each: 1.0 if each.recall is None else each.recall)
        chosen = {each.label for each in ranked[:_LABELS_LISTED]}
        listed = [each for each in self.labels if each.label in chosen]
        for only, labels in ((Only.TERMINAL, listed), (Only.PAGES, self.labels)):
            rows = [
                (each.label, each.samples, share(each.recall) or "-", share(each.precision) or "-") for each in labels
            ]
            if rows:
                yield Table("", (*names("label"), *numbers("samples", "recall", "precision")), rows, only=only)
        if len(listed) < len(self.labels):
            text = f"the {len(listed)} of {len(self.labels)} labels with the least recall"
            yield Text(text, only=Only.TERMINAL)

    def _worst(self) -> Part | None:
        rows = [
            (each.name, each.expected, each.predicted, "-" if each.score is None else f"{each.score:.4g}")
            for each in self.worst
        ]
        table = Table("worst samples", ("sample", "expected", "predicted", *numbers("score")), rows)
        return part("Worst samples", table) if rows else None

    def _remarks(self) -> Iterator[Section]:
        model = self.float_model
        if model is not None:
            yield Text(model.text, f"float model {model.model.name}")
            yield from filter(None, [part("Flipped samples", model.flip_table)])
            yield from losses_sections(model.losses, model.compared)
            if model.unmatched:
                text = (
                    f"{plural(model.unmatched, 'layer')} without a tensor of the same name and shape in the float model"
                )
                yield Text(text, "not compared")
        for path in self.paths:
            samples, seconds = plural(path.samples, "sample"), f"{path.wall_s:.1f} s, {path.cpu_s:.1f} s CPU"
            yield Text(f"{samples} by {path.where}: {seconds}", "ran")
        if not self.evidence:
            yield Text("nothing", "compared", State.BAD, only=Only.TERMINAL)
            text = "No output that is a number was compared with a label, a float model or a board."
            yield Conclusion("nothing compared", State.BAD, text, only=Only.PAGES)
        for metric in self.metrics:
            if metric.failed:
                yield Conclusion("failed", State.BAD, metric.broken_limit, only=Only.PAGES)
        if self.proof is None:
            yield Text(spelled(f"not compared with a board: {name_of('board')} names one"))
            text = "No board was named, so that the results are those of the fast path alone."
            yield Conclusion("not proved on a board", State.WARN, text, only=Only.PAGES)
        else:
            yield from self.proof.sections()

    def _explained(self) -> Iterator[Part | None]:
        """Yield the parts that only pages show: the data, the surroundings, and the run that proves the results."""
        data = self.data
        known = {
            "data": data.source,
            "form": data.form,
            "labels": data.labels,
            "preparation": joined(*data.preparation, by="; "),
            "data digest": data.digest,
            "model digest": self.model.digest,
        }
        yield page_part("Data", Facts.known(known))
        yield surroundings(self.environment)
        if self.proof is not None:
            report = self.proof.report
            folded = f"The run that proves it, on {report.build.board}"
            yield replace(report.sections(), folded=folded, only=Only.PAGES)

    @override
    def __repr__(self) -> str:
        values = ", ".join(f"{each.name} {each.value:.4g}" for each in self.metrics if each.value is not None)
        return (
            f"<{type(self).__name__} {brief(self.model.name)}: {self.data.samples:,} samples, {values or 'no metric'}>"
        )


def report_of(document: Document, what: str) -> ReportDocument:
    """Return the report of a run, or that of an evaluation's proof; `what` begins the error for other documents.

    Raises:
        FerruleError: the document has none.
    """
    match document:
        case ReportDocument():
            return document
        case EvaluationDocument(proof=None):
            raise FerruleError(f"{what}, and an evaluation without a run on a board has none", hint=NO_BOARD)
        case EvaluationDocument(proof=ProofPart() as proof):
            return proof.report
        case _:
            raise FerruleError(f"{what}, and a {document.kind} has none")
