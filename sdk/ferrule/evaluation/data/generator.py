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
from ferrule.graph import Array
from ferrule.reading import is_file, near_names

_ITEM_BYTES = 200
"""What a label takes in memory beside its values."""
_CONTRACT = "expected values, or (values, label); values are an array, or arrays by the names of the inputs"


def function_of(text: str) -> tuple[Path, str] | None:
    """Return the file and the function of FILE.py:function, or None if the text is no such thing."""
    path, separator, name = text.rpartition(":")
    return (Path(path), name) if separator and path.endswith(".py") and name.isidentifier() else None


class GeneratorSource:
    """Samples of a generator, all read when it is opened and kept as stored values."""

    form = "generator"

    def __init__(self, path: Path, name: str, conversions: Sequence[Conversion], limit: int | None) -> None:
        """Run the function; with `limit`, until it has yielded so many samples.

        Raises:
            InputError: there is no such file or function, it raises, or a sample or label does not fit; the message
                has the sample's place.
        """
        self._where = f"{path}:{name}"
        self._conversions = list(conversions)
        self._stored = [bytearray() for _ in conversions]
        self._labels: list[object] = []
        self._rules: list[str] = []
        self.more = False
        """Whether the function was stopped by the limit."""
        count = 0
        for item in self._items(path, name):
            if count == limit:
                self.more = True
                break
            self._add(item, count)
            count += 1
        if not count:
            raise InputError(f"{self._where} yields no samples")
        self._count = count
        self._rows = [
            np.frombuffer(data, each.info.dtype.numpy).reshape(count, *each.info.shape)
            for data, each in zip(self._stored, conversions, strict=True)
        ]

    def __len__(self) -> int:
        return self._count

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done to each sample."""
        first = (f"the first {self._count} samples",) if self.more else ()
        steps = [each.steps(rule) for each, rule in zip(self._conversions, self._rules, strict=True)]
        return (*first, *dict.fromkeys(step for found in steps for step in found))

    def name(self, index: int) -> str:
        """Return the sample's place."""
        return str(index)

    def read(self, indices: Sequence[int]) -> list[Array]:
        """Return samples; see `Source`."""
        chosen = list(indices)
        shapes = [each.info.shape for each in self._conversions]
        return [
            rows[chosen].reshape(len(chosen) * (shape[0] if shape else 1), *shape[1:])
            for rows, shape in zip(self._rows, shapes, strict=True)
        ]

    def labels(self) -> Array | list[str] | None:
        """Return class numbers, targets or names of classes; None without labels.

        Raises:
            InputError: the labels are of different kinds or shapes.
        """
        if not self._labels:
            return None
        where = f"{self._where}: labels"
        if all(isinstance(label, str) for label in self._labels):
            return [str(label) for label in self._labels]
        arrays = [np.asarray(label) for label in self._labels]
        shapes = {array.shape for array in arrays}
        kinds = {array.dtype.kind for array in arrays}
        if len(shapes) > 1 or not kinds <= set("iubf"):
            raise InputError(f"{where} are of different kinds or shapes, expected numbers or names of classes")
        if kinds <= set("iub") and shapes == {()}:
            numbers = np.array(arrays, np.int64)
            if numbers.min() < 0:
                raise InputError(f"{where}: sample {int(numbers.argmin())} has {numbers.min()}, which is no class")
            return numbers
        targets = np.array(arrays, np.float64)
        if not np.isfinite(targets).all():
            raise InputError(f"{where}: a target is not a finite number")
        return targets

    def _items(self, path: Path, name: str) -> Iterator[object]:
        with _running(self._where):
            found = _function(path, name)()
            if not isinstance(found, Iterable) or isinstance(found, (str, bytes)):
                raise InputError(f"{self._where} returns {type(found).__name__}, expected samples one after another")
            samples = iter(found)
        for count in itertools.count():
            with _running(f"{self._where}: sample {count}"):
                item = next(samples, _END)
            if item is _END:
                return
            yield item

    def _add(self, item: object, place: int) -> None:
        where = f"{self._where}: sample {place}"
        values = item
        if isinstance(item, tuple):
            if len(item) != 2:
                raise InputError(f"{where} is a tuple of {len(item)}, {_CONTRACT}")
            values = item[0]
        if place and isinstance(item, tuple) != bool(self._labels):
            raise InputError(f"{where} has {'a' if isinstance(item, tuple) else 'no'} label, unlike those before")
        if isinstance(item, tuple):
            self._labels.append(item[1])
            hold(_ITEM_BYTES + getattr(item[1], "nbytes", 0), where)
        self._rules = []
        for stored, conversion, part in zip(self._stored, self._conversions, self._parts(values, where), strict=True):
            hold(conversion.info.size_bytes, where)
            rule = conversion.rule(part.dtype, where)
            stored.extend(conversion.stored(part, rule, where).tobytes())
            self._rules.append(rule)

    def _parts(self, values: object, where: str) -> list[Array]:
        """Return an array with the shape of each input."""
        infos = [each.info for each in self._conversions]
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


def _function(path: Path, name: str) -> Any:  # noqa: ANN401 what the user's module has
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
        raise InputError(f"{path} has no function '{name}'")
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
