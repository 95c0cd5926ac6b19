# SPDX-License-Identifier: Apache-2.0
"""The parameter file: the constants of a network, one after the other without any gap, little endian (S4)."""

from __future__ import annotations

import hashlib
from typing import Any

from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.graph.tensor import little_endian


@frozen
class ParameterRecord:
    """One constant in the parameter file."""

    name: str
    """The attribute of the class."""
    tensor: str
    """The constant of the network from which it was made."""
    type: str
    """The name of the numpy dtype."""
    shape: tuple[int, ...]
    """Extents, outermost dimension first, as the elements lie in the file."""
    offset: int
    """In bytes from the start of the file."""
    bytes: int
    sha256: str


class ParameterFile:
    """Collects constants in the order in which the class reads them."""

    def __init__(self) -> None:
        self.records: list[ParameterRecord] = []
        self._parts: list[bytes] = []
        self._bytes = 0

    def add(self, name: str, tensor: str, values: NDArray[Any]) -> None:
        """Append a constant, with its elements in C order."""
        data = little_endian(values)
        record = ParameterRecord(
            name=name,
            tensor=tensor,
            type=values.dtype.name,
            shape=values.shape,
            offset=self._bytes,
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
        )
        self.records.append(record)
        self._parts.append(data)
        self._bytes += len(data)

    def contents(self) -> bytes:
        """Return the file."""
        return b"".join(self._parts)
