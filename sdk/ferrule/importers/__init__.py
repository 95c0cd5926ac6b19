# SPDX-License-Identifier: Apache-2.0
"""Reading trained models into networks."""

from ferrule.importers.tflite import load_tflite

__all__ = ["load_tflite"]
