# SPDX-License-Identifier: Apache-2.0
"""A script that quantises models by ai-edge-quantizer in a `KeptProcess`; it imports nothing from Ferrule.

So nothing that the library prints, and no fault of its native code, reaches the caller.
"""

from __future__ import annotations

import json
from pathlib import Path

WEIGHT_BITS = 8


def answer(arguments: list[str]) -> str:
    """Quantise the model of a folder; return "", or why the library refuses it.

    The folder has model.tflite and request.json: the `layers` and `ends` (the expression that finds an operator or an
    end of the model, the operation's name, the bits of activations), and the `ranges` (a tensor's least and largest
    value, by name). result.tflite is written there.
    """
    import numpy as np
    from ai_edge_quantizer import qtyping, quantizer

    folder = Path(arguments[0])
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    run = quantizer.Quantizer(bytearray((folder / "model.tflite").read_bytes()))
    for scope, name, bits in request["layers"]:
        try:
            run.add_static_config(scope, qtyping.TFLOperationName(name), bits, WEIGHT_BITS)
        except ValueError:  # it has no such operation, or not with these types: the layer stays in float32
            continue
    result = folder / "result.tflite"
    if not run.get_quantization_recipe():
        result.write_bytes((folder / "model.tflite").read_bytes())
        return ""
    ranges = {
        name: {"min": np.float32(low), "max": np.float32(high)} for name, (low, high) in request["ranges"].items()
    }
    try:
        done = run.quantize(ranges, enable_progress_report=False, enable_progress_bar=False)
    except Exception as error:  # noqa: BLE001 it becomes the answer
        return f"{type(error).__name__}: {error}".strip()
    result.write_bytes(bytes(done.quantized_model))
    return ""
