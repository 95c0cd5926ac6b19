# SPDX-License-Identifier: Apache-2.0
"""The errors for nodes that no row of the table reads, with what would unblock each."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ferrule.errors import UnsupportedError
from ferrule.formats.onnx.node import MICROSOFT, Node

_STATIC = (
    "quantise the model statically, with a calibration: onnxruntime.quantization.quantize_static; or take the float32 "
    "model"
)
_ELSEWHERE = "run this step outside of the model: export the model from the tensor behind it, or up to the one before"
_REMEDIES: Mapping[str, str] = {
    "ConvInteger": _STATIC,
    "DynamicQuantizeLinear": _STATIC,
    "MatMulInteger": _STATIC,
    f"{MICROSOFT}::DynamicQuantizeLSTM": _STATIC,
    f"{MICROSOFT}::DynamicQuantizeMatMul": _STATIC,
    f"{MICROSOFT}::MatMulIntegerToFloat": _STATIC,
    "NonMaxSuppression": _ELSEWHERE,
    "NonZero": _ELSEWHERE,
    "RandomNormal": _ELSEWHERE,
    "RandomUniform": _ELSEWHERE,
    "Unique": _ELSEWHERE,
}


def unsupported(node: Node) -> UnsupportedError:
    """Return the error for a node whose operator is not supported, with the way out in its hint."""
    if re.search("qonnx|brevitas|finn", node.domain):
        return UnsupportedError(
            f"the domain '{node.domain}' is not supported, expected QuantizeLinear and DequantizeLinear",
            hint="export the model in the form QCDQ: brevitas.export.export_onnx_qcdq, or QONNX's qonnx-to-qcdq "
            "(qonnx.transformation.qonnx_to_qcdq.QONNXtoQCDQ)",
        )
    if node.domain not in {"", MICROSOFT}:
        return UnsupportedError(
            f"the domain '{node.domain}' is not supported, expected operators of ONNX or of {MICROSOFT}",
            hint="export the model without custom operators; functions of the model's own: "
            "onnx.inliner.inline_local_functions(model)",
        )
    hint = _REMEDIES.get(node.key)
    if hint is not None and hint is _STATIC:
        return UnsupportedError("it quantises its input anew in every run, which is not supported", hint=hint)
    return UnsupportedError(
        "this operator is not supported",
        hint=hint
        or "replace the operator in the trained model: docs/onnx.md lists those that are supported; simplifying the "
        "model may remove it (pip install onnxsim)",
    )
