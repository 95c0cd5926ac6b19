# SPDX-License-Identifier: Apache-2.0
"""Networks as data: tensors, layers and the graph that contains them."""

from ferrule.graph.assembly import assemble
from ferrule.graph.datatype import DataType
from ferrule.graph.editor import GraphEditor
from ferrule.graph.graph import Graph
from ferrule.graph.layer import Descriptor, Layer, LayerType
from ferrule.graph.rounding import ALL_ROUNDINGS, FLOAT_ROUNDINGS, ONNX_ROUNDINGS, Rounding, roundings
from ferrule.graph.state import Kept, State, refuse_states, reset_value
from ferrule.graph.subgraph import SubgraphView
from ferrule.graph.tensor import Array, Quantization, Shape, Tensor, TensorInfo, brief, constant, renamed

__all__ = [
    "ALL_ROUNDINGS",
    "FLOAT_ROUNDINGS",
    "ONNX_ROUNDINGS",
    "Array",
    "DataType",
    "Descriptor",
    "Graph",
    "GraphEditor",
    "Kept",
    "Layer",
    "LayerType",
    "Quantization",
    "Rounding",
    "Shape",
    "State",
    "SubgraphView",
    "Tensor",
    "TensorInfo",
    "assemble",
    "brief",
    "constant",
    "refuse_states",
    "renamed",
    "reset_value",
    "roundings",
]
