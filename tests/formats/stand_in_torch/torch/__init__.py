# SPDX-License-Identifier: Apache-2.0
"""Stands in for torch, with what Ferrule's exporter uses: a program is an archive with its ONNX model and facts."""

from torch import export, nn, onnx

__all__ = ["export", "nn", "onnx"]
