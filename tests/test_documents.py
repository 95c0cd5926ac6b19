# SPDX-License-Identifier: Apache-2.0
"""The files that users write: whatever is wrong with one is a FerruleError with the file's name, in every reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ferrule.backends.manifest import MANIFEST_NAME as BACKEND_NAME
from ferrule.backends.manifest import read_manifest as read_backend
from ferrule.boards.description import read_description
from ferrule.budget import DEFAULTS, Resource
from ferrule.documents import HELD_PER_BYTE, schema_of
from ferrule.errors import FerruleError
from ferrule.firmware import manifest
from ferrule.running.configuration import read_configuration

SOURCES = Path(__file__).parents[1] / "sdk" / "ferrule"
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "board": ("board.toml", read_description),
    "configuration": ("ferrule.toml", read_configuration),
    "backend": (BACKEND_NAME, lambda path: read_backend(path.parent)),
    "project": (manifest.MANIFEST_NAME, lambda path: manifest.read_manifest(path.parent)),
}
TOO_LONG = DEFAULTS[Resource.BYTES] // HELD_PER_BYTE + 1
WRONG: dict[str, tuple[bytes, bytes]] = {
    "digits": (b"x = " + b"9" * 5000, b'{"schema_version": ' + b"9" * 5000 + b"}"),
    "hexadecimal digits": (b"x = 0x" + b"f" * 5000, b'{"schema_version": 1' + b"0" * 30 + b"}"),
    "not UTF-8": (b'title = "\xff"', b'{"model": "\xff"}'),
    "nested": (b"x = " + b"[" * 5000 + b"]" * 5000, b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "dotted": (b"x" + b".x" * 5000 + b" = 1", b"[" * 5000),
    "empty": (b"title =", b""),
    "too long": (b"#" * TOO_LONG, b" " * TOO_LONG),
}
"""By fault: the contents as TOML and as JSON."""


@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_wrong_names_the_file(tmp_path: Path, reader: str, fault: str) -> None:
    name, read = READERS[reader]
    path = tmp_path / name
    path.write_bytes(WRONG[fault][name.endswith(".json")])
    with pytest.raises(FerruleError) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


class Described(msgspec.Struct):
    """A line.

    Another one.
    """

    size: int


@pytest.mark.parametrize("text", ["A line.\n\nAnother one.", "A line.\n\n    Another one.\n    "])
def test_a_schema_has_no_indented_docstrings(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Versions of msgspec before 0.23 keep the indentation of the source; later ones do not."""
    monkeypatch.setattr(
        msgspec.json, "schema", lambda kind: {"$defs": {kind.__name__: {"description": text}, "Other": {}}}
    )
    assert schema_of(Described) == {"$defs": {"Described": {"description": "A line.\n\nAnother one."}, "Other": {}}}


@pytest.mark.parametrize("reader", [name for name, (file, _) in READERS.items() if file.endswith(".toml")])
@pytest.mark.parametrize("text", ['title = "\\u001b[31m"', 'x = [{ "a\\u202e" = 1 }]', 'y = ["a", ["\\u0007"]]'])
def test_texts_that_a_terminal_would_not_show_are_refused(tmp_path: Path, reader: str, text: str) -> None:
    name, read = READERS[reader]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(FerruleError, match=r"contains the character U\+") as caught:
        read(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("reader", READERS)
def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path, reader: str) -> None:
    name, read = READERS[reader]
    with pytest.raises(FerruleError, match=str(tmp_path)):
        read(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(FerruleError, match=str(tmp_path)):
        read(tmp_path / name)


def test_one_module_reads_toml() -> None:
    users = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py") if "tomllib" in path.read_text()}
    assert users == {"documents.py"}
