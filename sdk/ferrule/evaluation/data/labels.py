# SPDX-License-Identifier: Apache-2.0
"""Reads labels: from arrays, tables, lists of lines, or the names of folders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ferrule.errors import InputError, unknown_name
from ferrule.evaluation.data.array_files import map_array
from ferrule.evaluation.data.dataset import Labels
from ferrule.evaluation.data.file_errors import input_errors
from ferrule.evaluation.data.table import read_header, read_table
from ferrule.evaluation.data.wanted import Wanted
from ferrule.graph import Array, TensorInfo
from ferrule.interface import name_of
from ferrule.reading import read_bytes
from ferrule.running.data_settings import DataSettings

FORMS = (".npy", ".csv", ".txt")
_HELD_PER_BYTE = 32
"""The most bytes of memory that a byte of a list of labels takes: a line of three becomes a text, twice."""
_FILE_COLUMNS = ("file", "filename", "path", "name")
_LARGEST_CLASS = 1 << 31


def class_names(settings: DataSettings) -> tuple[str, ...] | None:
    """Return the names of `classes` in the `[data]` table, or None.

    Raises:
        InputError: the file cannot be read, or a name is empty or is given twice.
    """
    given = settings.classes
    if given is None:
        return None
    where = "[data] classes"
    if isinstance(given, str):
        where, given = given, tuple(read_lines(Path(given)))
    names = tuple(name.strip() for name in given)
    if not names:
        raise InputError(f"{where} has no names")
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not name:
            raise InputError(f"{where} has an empty name at place {index}")
        if name in seen:
            raise InputError(f"{where} has the name '{name}' twice")
        seen.add(name)
    return names


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 text, without empty ones at its end; InputError if it cannot be read."""
    with input_errors(path, "cannot be read", ValueError):  # a null character in the path
        text = read_bytes(path, held_per_byte=_HELD_PER_BYTE).decode("utf-8-sig")
    return [line.removesuffix("\r") for line in text.rstrip("\r\n").split("\n")] if text.strip() else []


def read_labels(path: Path, names: Sequence[str], wanted: Wanted) -> Labels:
    """Return the labels of a file, one per sample.

    `names` are those of the samples: a table with a column `file` has its rows in any order.

    Raises:
        InputError: the file cannot be read, or does not have one label of one kind per sample.
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        found = of_array(str(path), map_array(path))
    elif suffix == ".csv":
        found = _of_table(path, names)
    elif suffix == ".txt":
        lines = read_lines(path)
        found = of_texts(lines, str(path), [f"line {index}" for index in range(1, len(lines) + 1)])
    else:
        raise InputError(
            f"{name_of('labels')} {path}: the name ends with '{suffix}', expected {', '.join(FORMS)}",
            hint="a folder with a folder per class needs no labels",
        )
    count = len(found)
    if count != len(names):
        raise InputError(f"{path} has {count} labels, and there are {len(names)} samples")
    return labelled(found, str(path), wanted)


def labelled(values: Array | list[str], origin: str, wanted: Wanted) -> Labels:
    """Return labels from class numbers, targets or the names of classes; `origin` begins the messages.

    Raises:
        InputError: a number has no name, a name is unknown, or the order of the classes is not known.
    """
    classes = class_names(wanted.settings)
    if isinstance(values, list):
        order = classes or ordered(sorted(set(values)), wanted.outputs, origin)
        numbers = {name: index for index, name in enumerate(order)}
        for name in values:
            if name not in numbers:
                error = unknown_name("class", name, order, where=f"in [data] classes, but in {origin}")
                raise InputError(str(error), hint=error.hint)
        array: Array = np.array([numbers[name] for name in values], np.int64)
        return Labels(values=array, origin=origin, classes=tuple(order))
    labels = Labels(values=values, origin=origin)
    if classes is None or values.dtype.kind == "f":
        return labels
    largest = int(values.max())
    if largest >= len(classes):
        raise InputError(
            f"{origin} has the label {largest}, and [data] classes has the names of 0 to {len(classes) - 1}"
        )
    return replace(labels, classes=classes)


def ordered(names: Sequence[str], outputs: Sequence[TensorInfo], where: str) -> tuple[str, ...]:
    """Return sorted names as the order of the classes; InputError unless they are as many as the model's output has.

    A model with a single output value has two classes.
    """
    elements = outputs[0].elements if outputs else 0
    if len(names) != (2 if elements == 1 else elements):
        raise InputError(
            f"{where} has {len(names)} classes, and the model's output has {elements} values: which value belongs to "
            "which class is not known",
            hint='list all classes in the order of the output, in [data]: classes = ["yes", "no", ...]',
        )
    return tuple(names)


def of_array(where: str, array: Array) -> Array | list[str]:
    """Return class numbers, targets or names from an array; InputError, which begins with `where`, if it has none."""
    kind = array.dtype.kind
    if kind == "U":
        if array.ndim != 1:
            raise InputError(f"{where} has names in the shape {list(array.shape)}, expected one per sample")
        return [str(name) for name in array]
    if kind not in "iubf":
        raise InputError(f"{where} has values of type {array.dtype}, expected numbers or names")
    if array.ndim == 0:
        raise InputError(f"{where} has one value without a shape, expected one per sample")
    if kind == "f":
        bad = np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
        if bad.size:
            raise InputError(f"{where}, row {int(bad[0])}: a target is not a finite number")
        return array.astype(np.float64)
    if array.ndim == 1 or array.size == len(array):
        return _numbers(array.reshape(-1), where)
    return array.astype(np.float64)


def _numbers(array: Array, where: str) -> Array:
    for index in np.flatnonzero((array < 0) | (array >= _LARGEST_CLASS))[:1]:
        raise InputError(f"{where}, row {index}: {array[index]} is no class, expected 0 to {_LARGEST_CLASS - 1}")
    return array.astype(np.int64)


def _of_table(path: Path, names: Sequence[str]) -> Array | list[str]:
    header = read_header(path)
    key = next((name for name in header if name.lower() in _FILE_COLUMNS), None)
    columns = [name for name in header if name != key]
    if not columns:
        raise InputError(f"{path} has no column of labels")
    keys = () if key is None else (key,)
    targets, texts = (columns, keys) if len(columns) > 1 else ((), (*columns, *keys))
    table = read_table(path, targets, texts)
    order: Sequence[int] = range(len(table.lines))
    if key is not None:
        order = _by_name(path, table.texts[key], table.lines, names)
    if targets:
        values: Array = table.numbers[list(order)]
        return values
    labels = table.texts[columns[0]]
    return of_texts([labels[index] for index in order], str(path), [f"line {table.lines[index]}" for index in order])


def _by_name(path: Path, keys: Sequence[str], lines: Sequence[int], names: Sequence[str]) -> list[int]:
    """Return the row of each sample."""
    rows: dict[str, int] = {}
    for index, key in enumerate(keys):
        if key in rows:
            raise InputError(f"{path}, line {lines[index]}: '{key}' has a label in line {lines[rows[key]]} already")
        rows[key] = index
    missing = next((name for name in names if name not in rows), None)
    if missing is not None:
        raise InputError(f"{path} has no label for the sample '{missing}'")
    if len(rows) > len(names):
        known = set(names)
        unknown = next(key for key in rows if key not in known)
        raise InputError(f"{path}, line {lines[rows[unknown]]}: there is no sample '{unknown}'")
    return [rows[name] for name in names]


def of_texts(texts: Sequence[str], where: str, places: Sequence[str]) -> Array | list[str]:
    """Return class numbers if all texts are whole numbers, targets if all are numbers, names else."""
    stripped = [text.strip() for text in texts]
    for text, place in zip(stripped, places, strict=True):
        if not text:
            raise InputError(f"{where}, {place}: there is no label")
    if all(text.isascii() and text.isdigit() and len(text) <= 10 for text in stripped):
        return _numbers(np.array([int(text) for text in stripped], np.int64), where)
    reals = []
    for text in stripped:
        try:
            reals.append(float(text))
        except ValueError:
            return stripped
    for value, place in zip(reals, places, strict=True):
        if not math.isfinite(value):
            raise InputError(f"{where}, {place}: the target is not a finite number")
    return np.array(reals, np.float64)


def read_sequences(path: Path, count: int) -> Array:
    """Return the sequence of each sample from a .npy file of whole numbers, int64.

    Raises:
        InputError: the file cannot be read, or does not have one whole number per sample.
    """
    if path.suffix.lower() != ".npy":
        raise InputError(f"{name_of('sequence')} {path}: expected a .npy file with a whole number per sample")
    array = map_array(path)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InputError(f"{path} is {array.dtype}{list(array.shape)}, expected whole numbers, one per sample")
    if len(array) != count:
        raise InputError(f"{path} has {len(array)} sequence numbers, and there are {count} samples")
    return _of_sequences(array, str(path))


def numbered(values: Sequence[str], where: str) -> Array:
    """Return a number for each text, by the order in which they appear: the sequences of a CSV column."""
    numbers: dict[str, int] = {}
    array: Array = np.array([numbers.setdefault(value.strip(), len(numbers)) for value in values], np.int64)
    return _of_sequences(array, where)


def _of_sequences(array: Array, where: str) -> Array:
    """Return the numbers; InputError if a sequence goes on after another has begun."""
    starts = [0, *(np.flatnonzero(np.diff(array)) + 1).tolist()]
    _, firsts = np.unique(array[starts], return_index=True)
    for index in sorted(set(range(len(starts))).difference(firsts.tolist()))[:1]:
        raise InputError(
            f"{where}: sequence {array[starts[index]]} goes on at sample {starts[index]} after another one: a state "
            "cannot be resumed",
            hint="sort the samples by their sequences",
        )
    if array.dtype.kind == "u" and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{where}: a sequence number is larger than {np.iinfo(np.int64).max}")
    return array.astype(np.int64)
