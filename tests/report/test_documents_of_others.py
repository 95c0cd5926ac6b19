# SPDX-License-Identifier: Apache-2.0
"""Saved documents that others have changed: numbers with many digits, wherever they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import pytest
from saved_documents import documents

from ferrule.documents import check_integers, decode_json
from ferrule.errors import FerruleError
from ferrule.report.comparison import compare_documents
from ferrule.report.reading import read_comparable, read_documents
from ferrule.report.writers import WRITERS

KINDS = tuple(documents())
EXTREMES = ("0", "-1", "18446744073709551615", "-9223372036854775808", "1e308", "-1e308", "5e-324")


def _numbers(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401 JSON
    """Yield the places of all numbers."""
    match value:
        case dict():
            for key, each in value.items():
                yield from _numbers(each, (*path, key))
        case list():
            for index, each in enumerate(value):
                yield from _numbers(each, (*path, index))
        case int() | float() if not isinstance(value, bool):
            yield path


def _changed(document: Any, path: tuple[str | int, ...], number: str) -> bytes:  # noqa: ANN401 as above
    """Return the document with another number at a place."""
    copy = json.loads(json.dumps(document))
    parent: Any = reduce(lambda part, key: part[key], path[:-1], copy)
    parent[path[-1]] = "<here>"
    return json.dumps(copy).replace('"<here>"', number).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_an_integer_of_many_digits_is_an_error_wherever_it_is(kind: str, tmp_path: Path) -> None:
    plain = json.loads(msgspec.json.encode(documents()[kind]))
    file = tmp_path / "document.json"
    places = list(_numbers(plain))
    assert places
    for digits, path in zip((20, 400, 4299, 4301, 5000) * len(places), places, strict=False):
        file.write_bytes(_changed(plain, path, "9" * digits))
        with pytest.raises(FerruleError) as raised:
            read_documents(file)
        assert str(file) in str(raised.value)
        assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("number", EXTREMES)
@pytest.mark.parametrize("kind", KINDS)
def test_extreme_numbers_are_shown_or_refused(kind: str, number: str, tmp_path: Path) -> None:
    plain = json.loads(msgspec.json.encode(documents()[kind]))
    file = tmp_path / "document.json"
    for path in _numbers(plain):
        file.write_bytes(_changed(plain, path, number))
        with suppress(FerruleError):
            (found,) = read_documents(file)
            WRITERS["markdown"]([found])
            compare_documents(documents()[kind], found)


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_a_row_of_a_sweep(digits: int, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f'{{"run": "a", "status": "done", "model": "m", "count": {"9" * digits}}}\n')
    with pytest.raises(FerruleError, match="line 1 is not a row of a sweep"):
        read_comparable(file, print)


@pytest.mark.parametrize("data", [b'{"a": 18446744073709551615}', b'{"a": "99999999999999999999999"}', b'{"a": 1.5}'])
def test_other_numbers_stay(data: bytes) -> None:
    check_integers(data, "it")
    assert decode_json("it", data, dict[str, Any]) == json.loads(data)
