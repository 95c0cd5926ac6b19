# SPDX-License-Identifier: Apache-2.0
"""The optimizer: assigns a backend and a device to every layer of a network."""

from ferrule.optimizer.candidate import BackendSource
from ferrule.optimizer.explanation import LayerRow, explain
from ferrule.optimizer.optimize import optimize
from ferrule.optimizer.optimized import Assignment, Crossing, EdgeStrategy, OptimizedNetwork
from ferrule.optimizer.options import OptimizerOptions

__all__ = [
    "Assignment",
    "BackendSource",
    "Crossing",
    "EdgeStrategy",
    "LayerRow",
    "OptimizedNetwork",
    "OptimizerOptions",
    "explain",
    "optimize",
]
