# SPDX-License-Identifier: Apache-2.0
"""Writes a calibration as the table `[timing]` of a board.toml, into a file, a board or a copy of a board."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from ferrule.boards import Board
from ferrule.boards.catalogue import DESCRIPTION_NAME
from ferrule.documents import toml_tables
from ferrule.errors import FerruleError
from ferrule.reading import is_file, is_folder, read_bytes
from ferrule.scratch import write_file, writing
from ferrule.timing import BoardTiming, CacheTiming, MemoryTiming

_HEADER = re.compile(r"\s*\[\[?\s*([^\].\s]+)")
_BOUND_DIGITS = 4
"""Digits of a bound of the error, which is rounded away from 0."""


def timing_table(timing: BoardTiming) -> str:
    """Return the table of a calibrated timing, with a line break at its end."""
    return "".join(f"{line}\n" for line in _lines(timing))


def _lines(timing: BoardTiming) -> Iterator[str]:
    yield "[timing]"
    yield f"source = {json.dumps(timing.source)}"
    if timing.residual is not None:
        low, high = timing.residual
        yield f"residual = [{_outward(low)}, {_outward(high)}]"
    for name, memory in timing.memories.items():
        yield ""
        yield f"[timing.{name}]"
        yield from _properties(memory)


def _properties(memory: MemoryTiming) -> Iterator[str]:
    yield f"wait_states = {memory.wait_states}"
    if memory.write_wait_states:
        yield f"write_wait_states = {memory.write_wait_states}"
    if memory.dma_wait_states:
        yield f"dma_wait_states = {memory.dma_wait_states}"
    yield f"width_bytes = {memory.width_bytes}"
    if memory.prefetch:
        yield "prefetch = true"
    for name, cache in (("instruction_cache", memory.instruction_cache), ("data_cache", memory.data_cache)):
        if cache is not None:
            yield f"{name} = {_cache(cache)}"


def _cache(cache: CacheTiming) -> str:
    return f"{{ sets = {cache.sets}, ways = {cache.ways}, line_bytes = {cache.line_bytes} }}"


def _outward(bound: float) -> str:
    unit = 10.0**-_BOUND_DIGITS
    steps = int(abs(bound) / unit)
    rounded = (steps + (steps * unit < abs(bound))) * unit
    return f"{rounded if bound > 0 else -rounded if rounded else 0.0:.{_BOUND_DIGITS}f}"


def with_table(text: str, table: str) -> str:
    """Return the text of a board.toml with the table in place of its present one, or at its end.

    Raises:
        FerruleError: the table cannot be replaced without a change of something else.
    """
    found = _spliced(text, table)
    before, after = toml_tables(text), toml_tables(found)
    if before is None or after is None or before | {"timing": None} != after | {"timing": None}:
        raise FerruleError(
            f"the table [timing] of a {DESCRIPTION_NAME} cannot be replaced",
            hint="write it to a file of its own, and copy it from there",
        )
    return found


def _spliced(text: str, table: str) -> str:
    kept, at, inside = [], None, False
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        if header is not None:
            inside = header[1].strip("\"'") == "timing"
        if not inside:
            kept.append(line)
        elif at is None:
            at = len(kept)
    if at is None:
        return f"{text.rstrip()}\n\n{table}"
    behind = "".join(kept[at:])
    return "".join(kept[:at]) + table + (f"\n{behind.lstrip()}" if behind.strip() else "")


def write_table(table: str, board: Board, output: Path) -> Path:
    """Write a table where a user wants it, and return the file.

    A board.toml, or the folder of a board, gets the table in place of its own; a folder that does not exist becomes a
    copy of the board with the table; any other file has the table alone.

    Raises:
        FerruleError: the folder holds something else, or cannot be written.
    """
    if is_folder(output) and not is_file(output / DESCRIPTION_NAME):
        raise FerruleError(
            f"{output} is a folder without a {DESCRIPTION_NAME}",
            hint="name a board's folder, a new folder for a copy of the board, or a file that ends in .toml",
        )
    if is_folder(output):
        return _replaced(table, output / DESCRIPTION_NAME)
    if output.name == DESCRIPTION_NAME and is_file(output):
        return _replaced(table, output)
    if output.suffix:
        _write(output, table)
        return output
    return _copied(table, board, output)


def _replaced(table: str, file: Path) -> Path:
    _write(file, with_table(read_bytes(file).decode(), table))
    return file


def _copied(table: str, board: Board, folder: Path) -> Path:
    own = Path(board.folder.name)
    for file in board.files:
        place = board.path_among_boards(file)
        target = folder / place.relative_to(own) if place.is_relative_to(own) else folder.parent / place
        text = read_bytes(file).decode()
        if file.name == DESCRIPTION_NAME:
            text = with_table(text, table)
        if is_file(target) and read_bytes(target).decode() != text:
            raise FerruleError(f"{target} exists already, with other contents", hint="choose another folder")
        _write(target, text)
    return folder / DESCRIPTION_NAME


def _write(file: Path, text: str) -> None:
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text.encode())
