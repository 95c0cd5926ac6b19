# SPDX-License-Identifier: Apache-2.0
"""Opens zip archives that others made, whose directories and members state sizes that need not be true."""

from __future__ import annotations

import io
import zipfile
from typing import IO

from ferrule._typing import override
from ferrule.budget import Resource, afford

_HELD_PER_BYTE = 16
"""Bytes of memory for one of an archive's directory: an entry of 47 becomes an object, a name and a place in a dict."""
_PIECE_BYTES = 1 << 20


class _Counted(io.RawIOBase):
    """A file whose reads are compared with the budget before they are made."""

    def __init__(self, file: IO[bytes], what: str) -> None:
        self._file = file
        self._what = what

    @override
    def read(self, size: int = -1, /) -> bytes:
        if size > 0:
            afford(Resource.BYTES, _HELD_PER_BYTE * size, self._what)
        return self._file.read(size)

    @override
    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    @override
    def tell(self) -> int:
        return self._file.tell()

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True


def open_archive(file: IO[bytes], where: str) -> zipfile.ZipFile:
    """Return an archive, whose members are read with `unpacked`.

    Raises:
        BudgetError: its directory takes more memory than the present budget has.
        zipfile.BadZipFile: it is none.
    """
    archive = zipfile.ZipFile(_Counted(file, f"{where}: the directory of the archive"))
    archive.fp = file
    return archive


def unpacked(stream: IO[bytes], size: int, what: str) -> bytearray:
    """Return the rest of a member, or one byte more than `size` of it: what it unfolds to need not be what it states.

    Raises:
        BudgetError: `size` is more than the present budget has, before anything is unpacked.
    """
    afford(Resource.BYTES, size, what)
    data = bytearray()
    while len(data) <= size and (piece := stream.read(min(_PIECE_BYTES, size + 1 - len(data)))):
        data += piece
    return data
