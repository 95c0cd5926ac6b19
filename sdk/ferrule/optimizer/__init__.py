# SPDX-License-Identifier: Apache-2.0
"""From a network to one whose every layer has a backend."""

from ferrule.optimizer.candidate import BackendSource
from ferrule.optimizer.explanation import LayerRow, explain
from ferrule.optimizer.optimize import optimize
from ferrule.optimizer.optimized import Assignment, EdgeStrategy, OptimizedNetwork
from ferrule.optimizer.options import OptimizerOptions

__all__ = [
    "Assignment",
    "BackendSource",
    "EdgeStrategy",
    "LayerRow",
    "OptimizedNetwork",
    "OptimizerOptions",
    "explain",
    "optimize",
]
