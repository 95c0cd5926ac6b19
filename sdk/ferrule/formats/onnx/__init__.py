# SPDX-License-Identifier: Apache-2.0
"""The ONNX file format."""

from ferrule.formats.onnx.extents import parsed_shapes
from ferrule.formats.onnx.quantised import Arithmetic
from ferrule.formats.onnx.reader import read_onnx

__all__ = ["Arithmetic", "parsed_shapes", "read_onnx"]
