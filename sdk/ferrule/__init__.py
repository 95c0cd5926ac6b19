# SPDX-License-Identifier: Apache-2.0
"""Ferrule: from a trained model to bit-exact firmware on emulated and real boards.

import ferrule

network = ferrule.load("model.tflite")
outputs = network.run([x])
firmware = ferrule.compile(network, board="mps2-an386")
report = firmware.run([x], engine="unicorn")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ferrule._version import VERSION as __version__  # noqa: N811
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.facade import Firmware, compile, load  # noqa: A004
    from ferrule.graph import DataType, Quantization, TensorInfo
    from ferrule.network import Network
    from ferrule.report import RunReport, Verdict

__all__ = [
    "DataType",
    "FerruleError",
    "Firmware",
    "Network",
    "Quantization",
    "RunReport",
    "TensorInfo",
    "Verdict",
    "__version__",
    "compile",
    "load",
]

_HOMES = {
    "DataType": "ferrule.graph",
    "Firmware": "ferrule.facade",
    "Network": "ferrule.network",
    "Quantization": "ferrule.graph",
    "RunReport": "ferrule.report",
    "TensorInfo": "ferrule.graph",
    "Verdict": "ferrule.report",
    "compile": "ferrule.facade",
    "load": "ferrule.facade",
}


def __getattr__(name: str) -> object:
    """Import what is asked for, so that `import ferrule` costs nothing else."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ferrule' has no attribute '{name}'")
    return getattr(importlib.import_module(home), name)
