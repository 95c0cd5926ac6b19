# SPDX-License-Identifier: Apache-2.0
"""Unknown extents of a model's inputs, which its user gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ferrule.errors import FerruleError, unknown_name
from ferrule.formats.onnx.node import GraphRecord, ValueRecord
from ferrule.interface import either

Shapes = Mapping[str, Sequence[int]]
"""Shapes by the names of inputs."""
_OPTION = either("--shape", "shapes")


def parsed_shapes(given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes by the names of inputs that texts state, such as image=1,3,32,32.

    Raises:
        FerruleError: a text is another one, or two are for one input.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for name, extents in map(_parsed, given):
        if name in shapes:
            raise FerruleError(f"{_OPTION} gives the shape of '{name}' several times, expected once")
        shapes[name] = extents
    return shapes


def _parsed(given: str) -> tuple[str, tuple[int, ...]]:
    name, separator, extents = given.rpartition("=")
    try:
        numbers = tuple(map(int, extents.split(",")))
    except ValueError:
        numbers = ()
    if not (name and separator and numbers):
        raise FerruleError(f"{_OPTION} {given}: expected NAME=EXTENTS, such as image=1,3,32,32")
    return name, numbers


def with_shapes(record: GraphRecord, shapes: Shapes) -> GraphRecord:
    """Return a graph whose inputs have given shapes; an extent with a name has one number in all inputs.

    Raises:
        FerruleError: no input has a name, or the shapes contradict the file or one another; the message names the
            input.
    """
    inputs = {value.name: value for value in record.inputs if value.name not in record.constants}
    symbols: dict[str, tuple[int, str]] = {}
    found: dict[str, tuple[int | str, ...]] = {}
    for name, given in shapes.items():
        if name not in inputs:
            raise unknown_name("input", name, list(inputs))
        found[name] = _checked(inputs[name], given)
        for extent, number in zip(inputs[name].shape or (), found[name], strict=False):
            if isinstance(extent, str) and extent != "?":
                known, where = symbols.setdefault(extent, (int(number), name))
                if known != number:
                    raise FerruleError(f"the extent '{extent}' is {known} in '{where}' and {number} in '{name}'")
    numbers: Mapping[int | str, int] = {extent: number for extent, (number, _) in symbols.items()}
    return replace(record, inputs=tuple(_with_numbers(value, found, numbers) for value in record.inputs))


def _with_numbers(
    value: ValueRecord, found: Mapping[str, tuple[int | str, ...]], numbers: Mapping[int | str, int]
) -> ValueRecord:
    shape = found.get(value.name, value.shape)
    return value if shape is None else replace(value, shape=tuple(numbers.get(extent, extent) for extent in shape))


def _checked(value: ValueRecord, given: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that is given for an input, which has to fit what the file states."""
    if not isinstance(given, list | tuple) or not all(type(extent) is int and extent > 0 for extent in given):
        raise FerruleError(f"the shape of input '{value.name}' is {given!r}, expected integers of 1 or more")
    if value.shape is not None and (
        len(given) != len(value.shape)
        or any(isinstance(a, int) and a != b for a, b in zip(value.shape, given, strict=True))
    ):
        stated = ", ".join(map(str, value.shape))
        raise FerruleError(
            f"the shape of input '{value.name}' is given as {list(given)}, and the file states [{stated}]",
            hint="a shape can replace unknown extents only, which have a name or a question mark",
        )
    return tuple(given)


def notes(before: GraphRecord, after: GraphRecord) -> Iterator[str]:
    """Yield which inputs have other shapes than the file states."""
    for old, new in zip(before.inputs, after.inputs, strict=True):
        if old != new and new.shape is not None:
            stated = "no shape" if old.shape is None else f"[{', '.join(map(str, old.shape))}]"
            yield f"input '{new.name}': {stated} in the file, read as [{', '.join(map(str, new.shape))}]"
