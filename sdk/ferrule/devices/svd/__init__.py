# SPDX-License-Identifier: Apache-2.0
"""CMSIS-SVD, the format of register descriptions that debuggers and IDEs read: register tables out and in."""

from ferrule.devices.svd.peripheral import Interrupt, Peripheral
from ferrule.devices.svd.reading import SvdFile, read_svd
from ferrule.devices.svd.writing import svd_text

__all__ = ["Interrupt", "Peripheral", "SvdFile", "read_svd", "svd_text"]
