# SPDX-License-Identifier: Apache-2.0
"""Ferrule: from a trained model to bit-exact firmware on emulated and real boards.

import ferrule

network = ferrule.load("model.tflite")
outputs = network.run([x])
firmware = ferrule.compile(network, board="mps2-an386")
report = firmware.run([x], engine="unicorn")

docs/api.md shows these names, and the modules that users may import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._lazy import lazily
from ferrule._version import VERSION as __version__  # noqa: N811
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule import backends, boards
    from ferrule._typing import override
    from ferrule.budget import limits
    from ferrule.evaluation.evaluate import Evaluation, evaluate
    from ferrule.firmware import Job
    from ferrule.formats import from_torch, load
    from ferrule.graph import DataType, Quantization, TensorInfo
    from ferrule.network import Network
    from ferrule.quantization import QuantizedModel, quantize
    from ferrule.report import RunReport, Verdict
    from ferrule.running import Firmware, compile, generate, generate_acl, inspect  # noqa: A004

__all__ = [
    "DataType",
    "Evaluation",
    "FerruleError",
    "Firmware",
    "Job",
    "Network",
    "Quantization",
    "QuantizedModel",
    "RunReport",
    "TensorInfo",
    "Verdict",
    "__version__",
    "backends",
    "boards",
    "compile",
    "evaluate",
    "from_torch",
    "generate",
    "generate_acl",
    "inspect",
    "limits",
    "load",
    "override",
    "quantize",
]

_HOMES = {
    "DataType": "ferrule.graph",
    "Evaluation": "ferrule.evaluation.evaluate",
    "Firmware": "ferrule.running",
    "Job": "ferrule.firmware",
    "Network": "ferrule.network",
    "Quantization": "ferrule.graph",
    "QuantizedModel": "ferrule.quantization",
    "RunReport": "ferrule.report",
    "TensorInfo": "ferrule.graph",
    "Verdict": "ferrule.report",
    "backends": "ferrule.backends",
    "boards": "ferrule.boards",
    "compile": "ferrule.running",
    "evaluate": "ferrule.evaluation.evaluate",
    "from_torch": "ferrule.formats",
    "generate": "ferrule.running",
    "generate_acl": "ferrule.running",
    "inspect": "ferrule.running",
    "limits": "ferrule.budget",
    "load": "ferrule.formats",
    "override": "ferrule._typing",
    "quantize": "ferrule.quantization",
}
__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    """Return the public names, whether or not they have been imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
