# SPDX-License-Identifier: Apache-2.0
"""The TensorFlow Lite file format."""

from ferrule.formats.tflite.reader import read_tflite
from ferrule.formats.tflite.writer import to_tflite

__all__ = ["read_tflite", "to_tflite"]
