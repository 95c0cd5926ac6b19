# SPDX-License-Identifier: Apache-2.0
"""The request: what a caller asks of an evaluation, in one value that every step reads."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.data import DataSet, DataSettings, open_data
from ferrule.evaluation.intervals import Confidence
from ferrule.evaluation.losses import COMPARED
from ferrule.evaluation.metrics import check_metric
from ferrule.evaluation.scoring import Score
from ferrule.firmware import Job
from ferrule.interface import either, name_of, option
from ferrule.network import Network
from ferrule.running import RunRequest

_RUN = RunRequest()


@frozen
class EvaluationRequest:
    """How a model is evaluated; docs/evaluation.md describes the fields."""

    data: str | Sequence[str] | DataSet
    """Files, folders or FILE.py:function, or an open data set, whose labels, sequences and limit count."""
    labels: str | None = None
    settings: DataSettings | None = None
    limit: int | None = None
    sequence: str | None = None
    metrics: Sequence[str] = ()
    float_model: Network | None = None
    """The model from before its quantisation, which is evaluated on the same samples."""
    compared: int = COMPARED
    """By how many samples it is measured what each layer loses against the float model."""
    score: str = "output"
    output: str | None = None
    """The output that is scored; None for the first."""
    confidence: float = 0.95
    seed: int = 0
    """Draws the samples of `proof` and `limit`, and the resamples of bootstrap intervals."""
    worst: int = 10
    """How many of the worst samples are listed."""
    job: Job | None = None
    """The firmware that answers the samples, too; None to run them on the host alone."""
    proof: int = 20
    """How many samples run on the board and are compared."""
    on_board: bool = False
    """Whether all samples run on the board, of whose answers the metrics are then."""
    jobs: int = 1
    """The number of processes for that, each with a board of its own."""
    run: RunRequest = _RUN
    """How the firmware is run; its fields for the inputs of one run are not used."""

    def __post_init__(self) -> None:
        if isinstance(self.metrics, str):
            raise FerruleError(
                f"metrics is {self.metrics!r}, expected a list", hint=f"write metrics=[{self.metrics!r}]"
            )
        Confidence(level=self.confidence)  # refuses a level that is none
        if self.compared < 0:
            raise FerruleError(f"{name_of('compared')} is {self.compared}, expected a number from 0 on")
        if self.seed < 0:
            raise FerruleError(f"the seed is {self.seed}, expected a number from 0 on")
        object.__setattr__(self, "metrics", tuple(dict.fromkeys(self.metrics)))
        for name in self.metrics:
            check_metric(name)
        if self.score not in set(Score):
            raise FerruleError(f"the score is '{self.score}', expected {' or '.join(Score)}")
        for name, number in (("proof", self.proof), ("jobs", self.jobs)):
            if number < 1:
                raise FerruleError(f"{name} is {number}, expected at least 1")
        if self.on_board and self.job is None:
            raise FerruleError("all samples are to run on a board, and no board is named", hint=option("board", "NAME"))
        if self.jobs > 1 and not self.on_board:
            raise FerruleError(
                "several jobs are for running all samples on the board", hint=either("--on-board all", "on_board=True")
            )
        if self.jobs > 1 and self.run.engine == "serial":
            raise FerruleError("a real board runs one sample at a time, so there can be only one job")

    @property
    def reconstructs(self) -> bool:
        """Whether the score is the difference of the output from the input."""
        return self.score == Score.RECONSTRUCTION

    @property
    def intervals(self) -> Confidence:
        """How confidence intervals are computed."""
        return Confidence(level=self.confidence, seed=self.seed)

    def opened(self, network: Network) -> DataSet:
        """Return the data for the inputs of a network; raises as `open_data` does.

        Raises:
            FerruleError: an open data set is for other inputs, or something else is to be opened with it.
        """
        data = self.data
        if not isinstance(data, DataSet):
            return open_data(
                data,
                self.labels,
                network.inputs,
                network.outputs,
                self.settings or DataSettings(),
                self.limit,
                sequence=self.sequence,
                seed=self.seed,
            )
        if self.labels is not None or self.sequence is not None or self.limit is not None:
            raise FerruleError("an open DataSet has its labels, sequences and limit already: give them to open_data")
        if data.inputs != tuple(network.inputs):
            raise InputError("the DataSet was opened for the inputs of another model", hint="open it for this model")
        return data
