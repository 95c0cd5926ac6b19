# SPDX-License-Identifier: Apache-2.0
"""Reads TOML and JSON files of users: every malformed one is an error that names the file and the place in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import cleandoc
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ferrule.errors import FerruleError
from ferrule.reading import near_names, read_bytes
from ferrule.recognition import recognised
from ferrule.rendering import check_values

HELD_PER_BYTE = 64
"""The most bytes of memory that a byte of TOML or JSON takes once it is read: an empty list has 64 for three of text,
and values are copied while they are checked."""
_LONG_NUMBER = re.compile(rb"\d{20}")
"""What JSON has wherever an integer has more than 64 bits."""
_Kind = TypeVar("_Kind")


def file_bytes(path: Path, held_per_byte: int = HELD_PER_BYTE) -> bytes:
    """Return the contents of a file; FerruleError if it cannot be read, or is too large for the budget."""
    try:
        return read_bytes(path, held_per_byte=held_per_byte)
    except OSError as error:
        hint = near_names(path) if isinstance(error, FileNotFoundError) else None
        raise FerruleError(f"{path}: {error.strerror or error}", hint=hint) from error
    except ValueError as error:  # a null character in the path
        raise FerruleError(f"{str(path)!r}: {error}") from error


def read_toml(path: Path, *, hint: str | None = None) -> dict[str, Any]:
    """Return the contents of a TOML file.

    Raises:
        FerruleError: the file cannot be read, is not TOML, or has a text with control characters; the message has the
            place, and the error the given hint.
    """
    data = file_bytes(path)
    with _guarded(str(path), hint):
        other = recognised(data)
        if other is not None:
            raise FerruleError(f"{path}: it is {other.what}, expected TOML", hint=other.remedy or hint)
        found = tomllib.loads(data.decode("utf-8"))
        check_values(found, str(path))
        return found


def toml_tables(text: str) -> dict[str, Any] | None:
    """Return the contents of a TOML text; None if it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def convert(where: str, data: object, kind: type[_Kind], *, hint: str | None = None) -> _Kind:
    """Return the contents of a file as a typed value; FerruleError if they violate its schema.

    `where`, the file and perhaps a place in it, begins the message, which names the field.
    """
    with _guarded(where, hint):
        return msgspec.convert(data, kind)


def decode_json(where: str, data: bytes, kind: type[_Kind], *, hint: str | None = None) -> _Kind:
    """Return a JSON document as a typed value.

    Raises:
        FerruleError: it is not JSON, violates its schema, or has a text with control characters.
    """
    with _guarded(where, hint):
        other = recognised(data)
        if other is not None:
            raise FerruleError(f"{where}: it is {other.what}, expected JSON", hint=other.remedy or hint)
        found = _parsed(data, kind)
        check_values(msgspec.to_builtins(found), where)
        return found


def schema_of(kind: type) -> dict[str, object]:
    """Return the JSON Schema of dataclasses or msgspec structs, with their docstrings as descriptions."""
    found = msgspec.json.schema(kind)
    definitions: dict[str, dict[str, object]] = found.get("$defs", {})
    for each in definitions.values():
        if "description" in each:
            each["description"] = cleandoc(str(each["description"]))  # versions of msgspec indent lines differently
    return found


def json_text(document: object) -> str:
    """Return a document of dataclasses or msgspec structs as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def check_integers(data: bytes, where: str) -> None:
    """Raise FerruleError if a JSON document has an integer of more than 64 bits, with which not all can be computed.

    What is no JSON raises as msgspec does.
    """
    if _LONG_NUMBER.search(data):
        check_values(msgspec.json.decode(data), where, texts=False)


def decode(where: str, data: bytes, kind: type[_Kind], *, hint: str | None = None) -> _Kind:
    """Return a JSON document, whose texts are not checked, as a typed value; FerruleError as `decode_json`."""
    with _guarded(where, hint):
        check_integers(data, where)
        return _parsed(data, kind)


def _parsed(data: bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError):
        data.decode()  # so that bytes that are not UTF-8 raise UnicodeDecodeError, whatever msgspec raises
        raise


@contextmanager
def _guarded(where: str, hint: str | None) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise FerruleError(f"{where}: its values are nested too deep", hint=hint) from None
    except UnicodeError as error:
        raise FerruleError(f"{where}: it is not UTF-8: {error}", hint=hint) from error
    except (ValueError, msgspec.MsgspecError) as error:  # int() raises ValueError for a number with very many digits
        raise FerruleError(f"{where}: {error}", hint=hint) from error
