# SPDX-License-Identifier: Apache-2.0
"""The user's data in a sweep: all samples on the host, a seeded part of them on each board."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ferrule.errors import FerruleError
from ferrule.evaluation.sweep.file import DataEntry
from ferrule.reading import exists, files_below, is_folder, read_bytes

if TYPE_CHECKING:
    from ferrule.emulation import EngineOptions
    from ferrule.evaluation.answers import Answers
    from ferrule.evaluation.data import DataSet
    from ferrule.facade import Firmware
    from ferrule.facade.data_table import DataSettings
    from ferrule.network import Network
    from ferrule.report.evaluation_document import ProofPart

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


def data_digest(entry: DataEntry) -> str:
    """Return a digest of the contents of all files that the data, with absolute paths, name."""
    digest = hashlib.sha256()
    for path in _files(entry):
        data = read_bytes(path)
        digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
    digest.update(repr(msgspec.to_builtins(msgspec.structs.replace(entry, path="", labels=None))).encode())
    return digest.hexdigest()


def opened(network: Network, entry: DataEntry, settings: DataSettings) -> DataSet:
    """Return the data for a network; raises as `open_data` does."""
    from ferrule.evaluation.data import open_data

    return open_data(
        entry.path,
        entry.labels,
        network.inputs,
        network.outputs,
        settings,
        entry.limit,
        sequence=entry.sequence,
        seed=entry.seed,
    )


def proved(
    firmware: Firmware, entry: DataEntry, settings: DataSettings, engine: str, options: EngineOptions, timeout_s: float
) -> tuple[ProofPart, dict[str, float], int]:
    """Return the comparison of a board with the host, the metrics over all samples, and the number of these.

    The host's part is computed once for each network.
    """
    from ferrule.evaluation.on_board import Engine
    from ferrule.evaluation.proof import prove
    from ferrule.progress import say_nothing

    key = f"{firmware.artifact.digest} {msgspec.json.encode((entry, settings)).decode()}"
    found = _HOST.get(key)
    if found is None:
        _HOST.clear()  # one network's answers are enough: the runs of a model follow one another
        found = _HOST[key] = _on_host(firmware.network, entry, settings)
    data, answers, metrics = found
    runner = Engine(name=engine, options=options, timeout_s=timeout_s)
    part, _ = prove(firmware, runner, data, answers, entry.proof, entry.seed, say_nothing)
    return part, metrics, answers.samples


_HOST: dict[str, tuple[DataSet, Answers, dict[str, float]]] = {}
"""By network and data: the answers of the host, in a worker's process."""


def _on_host(network: Network, entry: DataEntry, settings: DataSettings) -> tuple[DataSet, Answers, dict[str, float]]:
    from ferrule.evaluation.answers import Answers
    from ferrule.evaluation.evaluate import evaluate

    data = opened(network, entry, settings)
    done = evaluate(
        network,
        data,
        metrics=entry.metrics,
        seed=entry.seed,
        score=entry.score,
        output=entry.output,
        worst=0,
    )
    document = done.document
    answers = Answers(
        outputs=done.outputs, samples=document.data.samples, labels=None, names=(), path=document.paths[0]
    )
    values = {part.name: part.value for part in document.metrics if part.value is not None}
    return data, answers, values


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


def _files(entry: DataEntry) -> Iterator[Path]:
    """Yield the files of the data, of the labels and of one's own metrics, in a fixed order."""
    paths: Sequence[str] = (entry.path,) if isinstance(entry.path, str) else entry.path
    for text in (*paths, entry.labels or "", entry.sequence or "", *(each for each in entry.metrics if ":" in each)):
        for _, path, _ in _readings(text):
            found = Path(path)
            if found.is_absolute() and is_there(found):
                yield from files_below(found) if is_folder(found) else [found]
                break
