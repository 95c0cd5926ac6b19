# SPDX-License-Identifier: Apache-2.0
"""Samples that a Python function yields. The function is code of the user's, which runs with the user's rights."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np

from ferrule.budget import hold
from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.data.conversion import Conversion, without_ones
from ferrule.evaluation.data.labels import of_array
from ferrule.evaluation.data.rows import Rows, RowSource
from ferrule.graph import Array
from ferrule.reading import is_file, near_names

_ITEM_BYTES = 200
"""What a label takes in memory beside its values."""
_CONTRACT = "expected values, or (values, label); values are an array, or arrays by the names of the inputs"


def function_of(text: str) -> tuple[Path, str] | None:
    """Return the file and the function of FILE.py:function, or None if the text is no such thing."""
    path, separator, name = text.rpartition(":")
    return (Path(path), name) if separator and path.endswith(".py") and name.isidentifier() else None


def generated(
    path: Path, name: str, conversions: Sequence[Conversion], limit: int | None
) -> tuple[RowSource, tuple[str, ...], list[object]]:
    """Run a function; with `limit`, until it has yielded so many samples.

    Return its samples, all kept as stored values, what precedes their preparation, and the labels, if any.

    Raises:
        InputError: there is no such file or function, it raises, or a sample does not fit; the message has
            its place.
    """
    where = f"{path}:{name}"
    stored = [bytearray() for _ in conversions]
    labels: list[object] = []
    rules: list[str] = []
    steps: tuple[str, ...] = ()
    count = 0
    for item in _items(path, name):
        if count == limit:
            steps = (f"the first {count} samples",)
            break
        place = f"{where}: sample {count}"
        if isinstance(item, tuple) and len(item) != 2:
            raise InputError(f"{place} is a tuple of {len(item)}, {_CONTRACT}")
        values, *label = item if isinstance(item, tuple) else (item,)
        if count and bool(label) != bool(labels):
            raise InputError(f"{place} has {'a' if label else 'no'} label, unlike those before")
        for each in label:
            hold(_ITEM_BYTES + getattr(each, "nbytes", 0), place)
        labels += label
        rules = []
        for kept, conversion, part in zip(stored, conversions, _parts(values, conversions, place), strict=True):
            hold(conversion.info.size_bytes, place)
            rules.append(conversion.rule(part.dtype, place))
            kept.extend(conversion.stored(part, rules[-1], place).tobytes())
        count += 1
    if not count:
        raise InputError(f"{where} yields no samples")
    rows = [
        Rows(
            values=np.frombuffer(data, each.info.dtype.numpy).reshape(count, *each.info.shape),
            conversion=each,
            rule="stored",
            steps=each.steps(rule),
        )
        for data, each, rule in zip(stored, conversions, rules, strict=True)
    ]
    return RowSource("generator", rows), steps, labels


def of_values(given: list[object], where: str) -> Array | list[str]:
    """Return class numbers, targets or names of classes; InputError if they are of different kinds or shapes."""
    arrays = [np.asarray(label) for label in given]
    shapes = {array.shape for array in arrays}
    kinds = {array.dtype.kind for array in arrays}
    if len(shapes) > 1 or not (kinds <= set("iubf") or kinds == {"U"}):
        raise InputError(f"{where} are of different kinds or shapes, expected numbers or names of classes")
    return of_array(where, np.array(arrays, np.float64 if shapes != {()} and kinds != {"U"} else None))


def _items(path: Path, name: str) -> Iterator[object]:
    where = f"{path}:{name}"
    with _running(where):
        found = user_function(path, name)()
        if not isinstance(found, Iterable) or isinstance(found, (str, bytes)):
            raise InputError(f"{where} returns {type(found).__name__}, expected samples one after another")
        samples = iter(found)
    for count in itertools.count():
        with _running(f"{where}: sample {count}"):
            item = next(samples, _END)
        if item is _END:
            return
        yield item


def _parts(values: object, conversions: Sequence[Conversion], where: str) -> list[Array]:
    """Return an array with the shape of each input."""
    infos = [each.info for each in conversions]
    names = [info.name for info in infos]
    given = values if isinstance(values, Mapping) else {names[0]: values}
    if sorted(map(str, given)) != sorted(names):
        raise InputError(f"{where} has values for {', '.join(map(str, given))}, expected {', '.join(names)}")
    parts = []
    for info in infos:
        with _running(where):
            array = np.asarray(given[info.name])
        if without_ones(array.shape) != without_ones(info.shape):
            raise InputError(f"{where} has the shape {list(array.shape)}, expected {list(info.shape)}")
        parts.append(array.reshape(info.shape or (1,)))
    return parts


_END = object()


def user_function(path: Path, name: str) -> Any:  # noqa: ANN401 what the user's module has
    """Return a function of a user's file (.py), which is run; its imports find the files beside it.

    Raises:
        InputError: there is no such file or function.
    """
    if not is_file(path):
        raise InputError(f"{path}: there is no such file", hint=near_names(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # the name ends with .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    function = getattr(module, name, None)
    if not callable(function):
        found = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        raise InputError(f"{path} has no function '{name}'", hint=f"it has {', '.join(found) or 'none'}")
    return function


@contextmanager
def _running(where: str) -> Iterator[None]:
    """Turn an exception of the user's code into an InputError with its last place in that code."""
    try:
        yield
    except FerruleError:
        raise
    except Exception as error:
        frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename != __file__]
        at = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        raise InputError(f"{where}: {type(error).__name__}: {error}{at}") from error
