# SPDX-License-Identifier: Apache-2.0
"""Reading TensorFlow Lite models."""

from ferrule.importers.tflite.importer import load_tflite

__all__ = ["load_tflite"]
