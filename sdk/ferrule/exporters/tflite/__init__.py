# SPDX-License-Identifier: Apache-2.0
"""Writing TensorFlow Lite models, for compilers and other runtimes to read."""

from ferrule.exporters.tflite.exporter import to_tflite

__all__ = ["to_tflite"]
