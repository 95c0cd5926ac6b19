# SPDX-License-Identifier: Apache-2.0
"""The ONNX file format."""

from ferrule.formats.onnx.reader import read_onnx

__all__ = ["read_onnx"]
