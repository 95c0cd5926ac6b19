# SPDX-License-Identifier: Apache-2.0
"""Files that describe the registers of devices, told apart by their suffix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ferrule.devices.rdl import read_rdl
from ferrule.devices.svd import Peripheral, read_svd
from ferrule.errors import FerruleError

SUFFIXES = (".rdl", ".svd", ".xml")


class Description(Protocol):
    """The peripherals of a device that a file describes."""

    path: Path
    device: str
    """Name of the device; empty if the file states none."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the peripherals."""
        ...

    def peripheral(self, name: str, *, prefer: Sequence[str] = ()) -> Peripheral:
        """Return a peripheral by name; `prefer` has patterns for registers that overlap."""
        ...


def read_description(path: Path) -> Description:
    """Open a file: `.rdl` is SystemRDL, `.svd` and `.xml` are CMSIS-SVD. Raises as `read_rdl` and `read_svd` do."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise FerruleError(f"{path} has the suffix '{path.suffix}', expected one of {', '.join(SUFFIXES)}")
    return read_rdl(path) if suffix == ".rdl" else read_svd(path)
