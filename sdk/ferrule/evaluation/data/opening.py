# SPDX-License-Identifier: Apache-2.0
"""Opens data sets: recognises their form, and joins samples, labels and sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.budget import begun
from ferrule.errors import FerruleError, InputError, unknown_name
from ferrule.evaluation.data.array_files import Arrays, array_source, map_array
from ferrule.evaluation.data.conversion import Conversion
from ferrule.evaluation.data.dataset import DataSet, Labels, Source, drawn, drawn_sequences
from ferrule.evaluation.data.folders import list_folder
from ferrule.evaluation.data.generator import function_of, generated, of_values
from ferrule.evaluation.data.images import ImageSource
from ferrule.evaluation.data.labels import labelled, numbered, of_array, of_texts, read_labels, read_sequences
from ferrule.evaluation.data.sounds import SoundSource
from ferrule.evaluation.data.table import read_header, read_table, table_source
from ferrule.evaluation.data.wanted import Wanted
from ferrule.graph import Array, TensorInfo
from ferrule.interface import name_of
from ferrule.reading import exists, is_folder, near_names
from ferrule.report.evaluation_document import DataPart
from ferrule.running.data_settings import DataSettings

FILES = "files"
"""The value of `--sequence` by which each recording is a sequence."""

_DATA = name_of("data")


@frozen
class Opened:
    """A source with what it brings itself."""

    source: Source
    labels: Labels | None = None
    sequences: Array | None = None
    steps: tuple[str, ...] = ()
    """What precedes the preparation of each sample."""


@begun()
def open_data(
    path: str | Sequence[str],
    labels: str | None,
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    settings: DataSettings,
    limit: int | None,
    *,
    sequence: str | None = None,
    seed: int = 0,
) -> DataSet:
    """Return the samples of a file, a folder or a generator as the inputs of a model.

    `path` is a file, a folder, FILE.py:function (which is run), or NAME=FILE.npy for each of several inputs. `labels`
    is a file, or a column of a CSV file. `sequence` is a .npy file of numbers, a column of a CSV file, or "files" for
    recordings. With `limit`, that many samples are drawn with `seed`; they keep their order.

    Raises:
        InputError: something cannot be read, or does not fit the model; the message names the file and the place.
        MissingToolError: a folder of images needs Pillow, which is not installed.
        FerruleError: the settings are wrong.
    """
    if limit is not None and limit < 1:
        raise FerruleError(f"the limit is {limit} samples, expected at least 1")
    wanted = Wanted(
        labels=labels,
        sequence=sequence,
        settings=settings,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        limit=limit,
    )
    paths = (path,) if isinstance(path, str) else tuple(path)
    opened = _open(paths, wanted)
    source = opened.source
    count = len(source)
    found = opened.labels
    if labels is not None and found is None:
        found = read_labels(Path(labels), [source.name(index) for index in range(count)], wanted)
    sequences = opened.sequences
    if sequence is not None and sequences is None:
        sequences = read_sequences(Path(sequence), count)
    order: Sequence[int] = range(count)
    steps = (*opened.steps, *source.steps)
    if limit is not None and limit < count:
        order = drawn(count, limit, seed) if sequences is None else drawn_sequences(sequences, limit, seed)
        what = "" if sequences is None else ", whole sequences"
        steps = (f"{len(order)} of {count} samples{what}, drawn with seed {seed}", *steps)
    return DataSet(
        source=source,
        inputs=wanted.inputs,
        order=order,
        labels=found,
        sequences=sequences,
        description=DataPart(
            source=", ".join(paths),
            form=source.form,
            samples=len(order),
            digest="",
            labels="" if found is None else found.origin,
            preparation=steps,
        ),
    )


def _open(paths: Sequence[str], wanted: Wanted) -> Opened:
    named = _by_input(paths, wanted.inputs)
    if named is not None:
        return Opened(source=array_source("npy", [(path, map_array(Path(path))) for path in named], wanted.conversions))
    if len(paths) != 1:
        raise InputError(
            f"{_DATA} is given {len(paths)} times, expected once, or NAME=FILE.npy for each input",
            hint=f"the model's inputs: {', '.join(info.name for info in wanted.inputs)}",
        )
    text = paths[0]
    path = Path(text)
    suffix = path.suffix.lower()
    function = function_of(text)
    if function is not None:
        return _generator(*function, wanted)
    if suffix == ".npy":
        wanted.single  # noqa: B018 raises
        return Opened(source=array_source("npy", [(text, map_array(path))], wanted.conversions))
    if suffix == ".npz":
        return _archive(path, wanted)
    if suffix == ".csv":
        return _table(path, wanted)
    if is_folder(path):
        return _folder(path, wanted)
    if not exists(path):
        raise InputError(f"{_DATA} {text}: there is no such file or folder", hint=near_names(path))
    raise InputError(
        f"{_DATA} {text}: is of no known form",
        hint="expected .npy, .npz, .csv, a folder of images or .wav files per class, or FILE.py:function",
    )


def _by_input(paths: Sequence[str], inputs: Sequence[TensorInfo]) -> list[str] | None:
    """Return the files of NAME=FILE options in the order of the inputs, or None if these are no such options."""
    names = [info.name for info in inputs]
    found: dict[str, str] = {}
    for text in paths:
        name, separator, path = text.rpartition("=")
        if not separator or name not in names:
            if len(paths) == 1:
                return None
            error = unknown_name("input", name if separator else text, names)
            raise InputError(f"{_DATA} {text}: {error}", hint=error.hint)
        if name in found:
            raise InputError(f"{_DATA} {text}: the input '{name}' is given twice")
        found[name] = path
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"{_DATA}: there are no values for the input '{missing[0]}'")
    return [found[name] for name in names]


def _archive(path: Path, wanted: Wanted) -> Opened:
    arrays = Arrays(path)
    names = [info.name for info in wanted.inputs]
    if len(names) == 1 and len(arrays) == 1:
        chosen = list(arrays)
    else:
        missing = [name for name in names if name not in arrays]
        if missing:
            error = unknown_name("array", missing[0], arrays, where=f"in {path}, for the model's input of that name")
            raise InputError(str(error), hint=error.hint)
        chosen = names
    places = [(f"{path}: array '{name}'", arrays[name]) for name in chosen]
    source, labels, key = array_source("npz", places, wanted.conversions), None, wanted.labels
    if key is not None and key in arrays:
        where = f"{path}: array '{key}'"
        labels = labelled(of_array(where, arrays[key]), where, wanted)
    return Opened(source=source, labels=labels)


def _folder(path: Path, wanted: Wanted) -> Opened:
    listing = list_folder(path, wanted.settings)
    labels = None
    if wanted.labels is not None:
        labels = read_labels(Path(wanted.labels), listing.names, wanted)
    elif listing.classes:
        labels = replace(labelled(list(listing.classes), str(path), wanted), origin="folders")
    if not listing.sounds:
        return Opened(source=ImageSource(listing, wanted.single, wanted.settings), labels=labels)
    sounds = SoundSource(listing, wanted.single, wanted.settings)
    return Opened(
        source=sounds,
        labels=None if labels is None else replace(labels, values=labels.values[sounds.files]),
        sequences=sounds.files if wanted.sequence == FILES else None,
    )


def _generator(path: Path, name: str, wanted: Wanted) -> Opened:
    source, steps, found = generated(path, name, wanted.conversions, wanted.limit)
    labels = None
    if found and wanted.labels is None:
        where = f"{path}:{name}"
        labels = labelled(of_values(found, f"{where}: labels"), where, wanted)
    return Opened(source=source, steps=steps, labels=labels)


def _table(path: Path, wanted: Wanted) -> Opened:
    info = wanted.single
    header = read_header(path)
    settings = wanted.settings
    label = wanted.labels if wanted.labels in header else settings.label if wanted.labels is None else None
    sequence = wanted.sequence if wanted.sequence in header else None
    texts = [name for name in (label, sequence) if name is not None]
    columns = settings.features or tuple(name for name in header if name not in texts)
    table = read_table(path, columns, texts)
    source = table_source(path, table, columns, Conversion.of(info, settings))
    found = None
    if label is not None:
        origin = f"column '{label}'"
        values = of_texts(table.texts[label], f"{path}, {origin}", [f"line {line}" for line in table.lines])
        found = labelled(values, origin, wanted)
    sequences = None if sequence is None else numbered(table.texts[sequence], f"{path}, column '{sequence}'")
    return Opened(source=source, labels=found, sequences=sequences)
