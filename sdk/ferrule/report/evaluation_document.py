# SPDX-License-Identifier: Apache-2.0
"""The results of `ferrule evaluate` as data. Its JSON Schema is generated from these types."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule._typing import override
from ferrule.graph import brief
from ferrule.interface import option
from ferrule.report.document import ModelPart, ReportDocument, Verdict
from ferrule.report.evidence import NO_EVIDENCE, Evidence
from ferrule.report.notebooks import Notebook
from ferrule.report.picture import EnvironmentPart

EVALUATION_SCHEMA_VERSION = 3
NO_BOARD = f"evaluate it again on a board: {option('board', 'NAME')}"
"""The hint of formats that show the layers on a board, for a document without `proof`."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPart:
    """The results for one label."""

    label: str
    samples: int
    recall: float | None
    precision: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionPart:
    """How often each label was predicted for each label."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """A row for each expected label, a column for each predicted one."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPart:
    """How the samples were computed."""

    where: str
    """Such as "CpuAcc on the host" or "mps2-an386 by unicorn"."""
    samples: int
    cpu_s: float
    """Processor seconds of all processes."""
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationDocument(Notebook):
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
    def __repr__(self) -> str:
        values = ", ".join(f"{each.name} {each.value:.4g}" for each in self.metrics if each.value is not None)
        return f"<EvaluationDocument {brief(self.model.name)}: {self.data.samples:,} samples, {values or 'no metric'}>"


def evaluation_schema() -> dict[str, object]:
    """Return the JSON Schema of the document."""
    import msgspec

    return msgspec.json.schema(EvaluationDocument)
