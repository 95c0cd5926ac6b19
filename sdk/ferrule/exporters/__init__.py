# SPDX-License-Identifier: Apache-2.0
"""Writing networks in other tools' formats."""

from ferrule.exporters.tflite import to_tflite

__all__ = ["to_tflite"]
