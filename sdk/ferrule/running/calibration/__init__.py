# SPDX-License-Identifier: Apache-2.0
"""Calibration: the timing of a board's memories, fitted to what small programs take on the board."""

from ferrule.running.calibration.calibration import (
    Calibration,
    CalibrationRequest,
    calibrate,
    calibration_firmware,
)
from ferrule.running.calibration.timing_table import timing_table, write_table

__all__ = [
    "Calibration",
    "CalibrationRequest",
    "calibrate",
    "calibration_firmware",
    "timing_table",
    "write_table",
]
