# SPDX-License-Identifier: Apache-2.0
"""Reads CSV files: a header, then one row per sample."""

from __future__ import annotations

import csv
import io
import math
from array import array as packed
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from ferrule._frozen import frozen
from ferrule.budget import Resource, afford, hold
from ferrule.errors import InputError, unknown_name
from ferrule.evaluation.data.conversion import Conversion
from ferrule.evaluation.data.file_errors import input_errors
from ferrule.evaluation.data.rows import Rows, RowSource
from ferrule.graph import Array
from ferrule.reading import open_file
from ferrule.recognition import recognised

_TEXT_BYTES = 80
"""What a short text takes in memory, with its place in a list."""
_HEAD_BYTES = 1 << 12
_PIECE_CHARACTERS = 1 << 20
_CHARACTER_BYTES = 4
"""The most that Python keeps for one character."""


@frozen
class Table:
    """The columns that were asked for."""

    header: tuple[str, ...]
    numbers: Array
    """float64, a row per sample and a column per column of numbers."""
    texts: dict[str, list[str]]
    """The other columns by name."""
    lines: Sequence[int]
    """The line of each row in the file, counted from 1."""


def read_header(path: Path) -> tuple[str, ...]:
    """Return the names of a CSV file's columns; InputError if it has none, one twice, or numbers in their place."""
    with _rows(path) as rows:
        return _header(path, rows)


def read_table(path: Path, numbers: Sequence[str], texts: Sequence[str] = ()) -> Table:
    """Return columns of a CSV file: `numbers` as finite numbers, `texts` as they are.

    Raises:
        InputError: the file cannot be read, lacks a column or has no rows, or a row has another number of cells or a
            cell that is no finite number; the message names the line and the column.
    """
    with _rows(path) as rows:
        header = _header(path, rows)
        index = {name: place for place, name in enumerate(header)}
        for name in (*numbers, *texts):
            if name not in index:
                error = unknown_name("column", name, header)
                raise InputError(f"{path}: {error}", hint=error.hint)
        places = [index[name] for name in numbers]
        text_places = [(name, index[name]) for name in texts]
        row_bytes = 8 * (len(places) + 1) + _TEXT_BYTES * len(texts)
        values, found, lines = packed("d"), {name: list[str]() for name in texts}, packed("q")
        for line, row in rows:
            if len(row) != len(header):
                raise InputError(f"{path}, line {line}: {len(row)} cells, expected {len(header)} as in the header")
            values.extend([_cell(path, line, header[place], row[place]) for place in places])
            for name, place in text_places:
                found[name].append(row[place])
            lines.append(line)
            hold(row_bytes + sum(len(row[place]) for _, place in text_places), f"{path}, line {line}")
    if not lines:
        raise InputError(f"{path} has a header and no rows")
    array = np.frombuffer(values, np.float64) if values else np.zeros(0)
    return Table(header=header, numbers=array.reshape(len(lines), len(places)), texts=found, lines=lines)


def table_source(path: Path, table: Table, columns: Sequence[str], conversion: Conversion) -> RowSource:
    """Return the samples of a CSV file: a row's columns of numbers are the elements of the model's input, in C order.

    Raises:
        InputError: there are more or fewer columns than elements, or the rule for integers does not fit.
    """
    info, values, rule = conversion.info, table.numbers, "real"
    if len(columns) != info.elements:
        raise InputError(
            f"{path} has {len(columns)} columns of values, expected {info.elements} for the input '{info.name}'",
            hint="name the columns of the values with `features`, and that of the labels with `label`, in [data]",
        )
    if conversion.integers in {"stored", "shift"}:
        dtype = info.dtype.numpy if conversion.integers == "stored" else np.dtype(np.uint8)
        rule = conversion.rule(dtype, str(path))
        limits = np.iinfo(dtype)
        wrong = np.argwhere((values != np.floor(values)) | (values < limits.min) | (values > limits.max))
        if len(wrong):
            row, column = wrong[0]
            raise InputError(
                f"{path}, line {table.lines[row]}, column '{columns[column]}': {values[row, column]:g} is no stored "
                f"value, expected whole numbers from {limits.min} to {limits.max}"
            )
        values = values.astype(dtype)

    def place(first: int, last: int) -> str:
        lines = table.lines
        return f"{path}, line {lines[first]}" if first == last else f"{path}, lines {lines[first]} to {lines[last]}"

    rows = Rows(values=values, conversion=conversion, rule=rule, steps=conversion.steps(rule), where=place)
    return RowSource("csv", [rows])


def _header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> tuple[str, ...]:
    _, cells = next(rows, (0, list[str]()))
    header = tuple(cell.strip() for cell in cells)
    if not header:
        raise InputError(f"{path} is empty, expected a header")
    if all(_number(cell) is not None for cell in header):
        raise InputError(f"{path}, line 1: has numbers only, expected a header with the names of the columns")
    twice = next((name for name, number in Counter(header).items() if number > 1), None)
    if twice is not None:
        raise InputError(f"{path}, line 1: there are two columns '{twice}'")
    return header


def _cell(path: Path, line: int, column: str, text: str) -> float:
    number = _number(text)
    if number is None or not math.isfinite(number):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise InputError(f"{path}, line {line}, column '{column}': '{shown}', expected a finite number")
    return number


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@contextmanager
def _rows(path: Path) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Yield the rows that are not empty with their lines; errors of the file become InputErrors."""
    line = 0

    def rows(file: TextIO) -> Iterator[tuple[int, list[str]]]:
        nonlocal line
        reader = csv.reader(_bounded(path, file), strict=True)
        while True:
            line = reader.line_num + 1
            row = next(reader, None)
            if row is None:
                return
            if row:
                yield reader.line_num, row

    with (
        input_errors(path, "cannot be read", ValueError),  # a null character in the path
        io.TextIOWrapper(open_file(path), encoding="utf-8-sig", newline="") as file,
    ):
        other = recognised(file.buffer.peek(_HEAD_BYTES))
        if other is not None:
            raise InputError(f"{path}: it is {other.what}, expected CSV", hint=other.remedy or None)
        try:
            yield rows(file)
        except UnicodeError as error:
            raise InputError(f"{path} is not UTF-8 after line {line}: {error.__class__.__name__}") from error
        except csv.Error as error:
            raise InputError(f"{path}, line {line}: {error}") from error


def _bounded(path: Path, file: TextIO) -> Iterator[str]:
    """Yield the lines; one without an end is read only as far as the budget goes."""
    while text := file.readline(_PIECE_CHARACTERS):
        pieces = [text]
        while len(pieces[-1]) == _PIECE_CHARACTERS and not pieces[-1].endswith("\n"):
            characters = (len(pieces) + 1) * _PIECE_CHARACTERS
            afford(Resource.BYTES, _CHARACTER_BYTES * characters, f"{path}: a line of up to {characters:,} characters")
            pieces.append(file.readline(_PIECE_CHARACTERS))
        yield "".join(pieces)
