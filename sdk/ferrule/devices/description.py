# SPDX-License-Identifier: Apache-2.0
"""Files that describe the registers of devices, told apart by their suffix."""

from __future__ import annotations

from pathlib import Path

from ferrule.devices.rdl import RdlFile, read_rdl
from ferrule.devices.svd import SvdFile, read_svd
from ferrule.errors import FerruleError

SUFFIXES = (".rdl", ".svd", ".xml")


Description = RdlFile | SvdFile
"""The peripherals of a device that a file describes."""


def read_description(path: Path) -> Description:
    """Open a file: `.rdl` is SystemRDL, `.svd` and `.xml` are CMSIS-SVD. Raises as `read_rdl` and `read_svd` do."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise FerruleError(f"{path} has the suffix '{path.suffix}', expected one of {', '.join(SUFFIXES)}")
    return read_rdl(path) if suffix == ".rdl" else read_svd(path)
