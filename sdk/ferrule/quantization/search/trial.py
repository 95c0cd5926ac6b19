# SPDX-License-Identifier: Apache-2.0
"""One trial of a search: a model with a setting, what it takes of the board as planned, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule._frozen import frozen
from ferrule.backends.target import MemoryKind
from ferrule.emulation import Clock
from ferrule.errors import FerruleError
from ferrule.evaluation.data import DataSet
from ferrule.evaluation.data.stored import stored
from ferrule.evaluation.evaluate import Evaluation, evaluated
from ferrule.evaluation.request import EvaluationRequest
from ferrule.firmware import Job
from ferrule.firmware.fitting import board_fit
from ferrule.graph import Array, Graph
from ferrule.network import Network
from ferrule.network.samples import in_real_numbers
from ferrule.operators.table import OPERATORS
from ferrule.quantization.form import FloatForm
from ferrule.quantization.outputs import noise
from ferrule.quantization.precision import Precision, carried_over
from ferrule.quantization.ranges import Range
from ferrule.report.search_document import TrialPart
from ferrule.running import RunRequest

LEVELS = (Precision.INT8, Precision.INT16, Precision.FLOAT)
"""The precisions of a block, the first of which is where a search begins."""


def blocks(graph: Graph) -> tuple[tuple[str, ...], ...]:
    """Return the layers that get a precision together: each that sums products, with those up to the next one."""
    found: list[list[str]] = []
    for layer in graph.layers:
        operator = OPERATORS.get(layer.type)
        if not found or (operator is not None and operator.weighted and _has_weighted(graph, found[-1])):
            found.append([])
        found[-1].append(layer.name)
    return tuple(map(tuple, found))


def _has_weighted(graph: Graph, names: Sequence[str]) -> bool:
    rows = (OPERATORS.get(graph.layer(name).type) for name in names)
    return any(row is not None and row.weighted for row in rows)


@frozen
class Subject:
    """What all trials of a search share."""

    form: FloatForm
    ranges: Mapping[str, Range]
    blocks: tuple[tuple[str, ...], ...]
    io: Precision
    job: Job
    data: DataSet
    """The samples on which settings are judged."""
    metric: str
    """Empty to judge by the noise alone."""
    outputs: tuple[Array, ...]
    """Those of the float model for these samples, joined along the first axis."""

    def network(self, setting: Sequence[int]) -> Network:
        """Return the model with the precisions of a setting."""
        given = {name: LEVELS[level] for names, level in zip(self.blocks, setting, strict=True) for name in names}
        integers, _ = self.form.quantized(self.ranges, carried_over(self.form.simple, given, self.form.normal), self.io)
        return self.form.with_own_outputs(integers)

    def evaluation(self, network: Network, data: DataSet, *, job: Job | None = None, proof: int = 20) -> Evaluation:
        """Return a model's metrics on samples of the float model; with a job, also its time on the board."""
        metrics = (self.metric,) if self.metric else ()
        timed = job is not None and job.load_board().pace is not None
        return evaluated(
            network,
            EvaluationRequest(
                data=stored(data, network),
                metrics=metrics,
                worst=0,
                job=job,
                proof=proof,
                run=RunRequest(clock=Clock.CYCLES if timed else None),
            ),
        )


def names_of(setting: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the precisions of a setting."""
    return tuple(str(LEVELS[level]) for level in setting)


def attempt(subject: Subject, setting: Sequence[int]) -> TrialPart:
    """Return what a setting is like; one that cannot be built says why."""
    names = names_of(setting)
    try:
        network = subject.network(setting)
        fit = board_fit(network, subject.job)
        done = subject.evaluation(network, subject.data)
    except FerruleError as error:
        return TrialPart(setting=names, problem=str(error))
    return TrialPart(
        setting=names,
        metric=done.metric(subject.metric).value if subject.metric else None,
        noise=noise(subject.outputs, in_real_numbers(network.outputs, done.outputs)),
        flash=fit.bytes_of(MemoryKind.FLASH),
        ram=fit.bytes_of(MemoryKind.RAM),
        ms=None if fit.use is None else fit.use.milliseconds,
    )
