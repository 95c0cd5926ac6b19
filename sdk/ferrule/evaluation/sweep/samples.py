# SPDX-License-Identifier: Apache-2.0
"""The user's data in a sweep: all samples on the host, a seeded part of them on each board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.evaluation.sweep.file import DataEntry
from ferrule.reading import exists
from ferrule.record import remembered

if TYPE_CHECKING:
    from ferrule.evaluation.data import DataSet
    from ferrule.evaluation.predictions import Predictions
    from ferrule.evaluation.request import EvaluationRequest
    from ferrule.network import Network
    from ferrule.report.evaluation_document import ProofPart
    from ferrule.running import Firmware, RunRequest
    from ferrule.running.data_settings import DataSettings

FUNCTION = ".py"


def placed(entry: DataEntry, folder: Path) -> DataEntry:
    """Return the data with absolute paths; FerruleError if there is no such file or metric."""
    from ferrule.evaluation.metrics import check_metric

    for metric in entry.metrics:
        check_metric(metric)
    paths = (entry.path,) if isinstance(entry.path, str) else entry.path
    return msgspec.structs.replace(
        entry,
        path=tuple(_absolute(path, folder, "data.path") for path in paths),
        labels=None if entry.labels is None else _absolute(entry.labels, folder, None),
        sequence=None if entry.sequence is None else _absolute(entry.sequence, folder, None),
        metrics=tuple(
            _absolute(metric, folder, "data.metrics") if ":" in metric else metric for metric in entry.metrics
        ),
    )


def request_of(entry: DataEntry, settings: DataSettings, run: RunRequest | None = None) -> EvaluationRequest:
    """Return what is asked of an evaluation on the data."""
    from ferrule.evaluation.request import EvaluationRequest
    from ferrule.running import RunRequest

    asked = msgspec.structs.asdict(entry)
    return EvaluationRequest(data=asked.pop("path"), settings=settings, worst=0, run=run or RunRequest(), **asked)


def evaluate_on_board(
    firmware: Firmware, entry: DataEntry, settings: DataSettings, run: RunRequest
) -> tuple[ProofPart, dict[str, float], int]:
    """Return the comparison of a board with the host, the metrics over all samples, and the number of these.

    The host's part is computed once for each network.
    """
    from ferrule.evaluation.proof import prove

    asked = _Asked(
        key=f"{firmware.artifact.digest} {msgspec.json.encode((entry, settings)).decode()}",
        network=firmware.network,
        request=request_of(entry, settings),
    )
    data, predictions, metrics = _on_host(asked)
    part, _ = prove(firmware, request_of(entry, settings, run), data, predictions)
    return part, metrics, predictions.samples


@frozen
class _Asked:
    """A network and what is asked of it, which are equal if their key is."""

    key: str
    network: Network = field(compare=False)
    request: EvaluationRequest = field(compare=False)


@partial(remembered, limit=1)  # the runs of a model follow one another
def _on_host(asked: _Asked) -> tuple[DataSet, Predictions, dict[str, float]]:
    from ferrule.evaluation.evaluate import evaluated
    from ferrule.evaluation.predictions import Predictions

    data = asked.request.opened(asked.network)
    request = replace(asked.request, data=data, labels=None, limit=None, sequence=None)
    done = evaluated(asked.network, request)
    document = done.document
    predictions = Predictions(
        outputs=done.outputs, samples=document.data.samples, labels=None, names=(), path=document.paths[0]
    )
    values = {part.name: part.value for part in document.metrics if part.value is not None}
    return data, predictions, values


def _absolute(text: str, folder: Path, required: str | None) -> str:
    """Return a path, NAME=path or path:function with an absolute path; other texts unchanged if not `required`."""
    for prefix, path, suffix in _readings(text):
        if is_there(folder / path):
            return f"{prefix}{(folder / path).resolve()}{suffix}"
    if required is None:
        return text
    raise FerruleError(f"{required}: there is no file {text}", hint=f"paths are relative to {folder}")


def is_there(path: Path) -> bool:
    """Return whether there is a file or folder; False also for a path that the system refuses, such as a long one."""
    try:
        return exists(path)
    except (OSError, ValueError):
        return False


def _readings(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield what a text can mean: a prefix, a path and a suffix."""
    yield "", text, ""
    file, colon, function = text.rpartition(":")
    if colon and file.endswith(FUNCTION):
        yield "", file, f":{function}"
    name, equals, path = text.partition("=")
    if equals:
        yield f"{name}=", path, ""
