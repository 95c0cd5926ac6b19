# SPDX-License-Identifier: Apache-2.0
"""PyTorch's modules, and its programs of torch.export (.pt2), by way of its own exporter to ONNX."""

from ferrule.formats.pytorch.export import onnx_of_module, onnx_of_program

__all__ = ["onnx_of_module", "onnx_of_program"]
