# SPDX-License-Identifier: Apache-2.0
"""A script that quantises one model by ai-edge-quantizer, in a process of its own; it imports nothing from Ferrule.

So nothing that the library prints, and no fault of its native code, reaches the caller. The argument is a folder with
model.tflite and request.json: the `layers` and `ends` (the expression that finds an operator or an end of the model,
the operation's name, the bits of activations), and the `ranges` (a tensor's least and largest value, by name). It
writes result.tflite there, or the text error.txt.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

WEIGHT_BITS = 8


def main() -> int:
    """Quantise the model; the exit code is 1 if the library refuses it."""
    import numpy as np
    from ai_edge_quantizer import qtyping, quantizer

    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    run = quantizer.Quantizer(bytearray((folder / "model.tflite").read_bytes()))
    for scope, name, bits in request["layers"]:
        try:
            run.add_static_config(scope, qtyping.TFLOperationName(name), bits, WEIGHT_BITS)
        except ValueError:  # it has no such operation, or not with these types: the layer stays in float32
            continue
    for scope, name, bits in request["ends"]:
        run.add_static_config(scope, qtyping.TFLOperationName(name), bits, WEIGHT_BITS)
    result = folder / "result.tflite"
    if not run.get_quantization_recipe():
        result.write_bytes((folder / "model.tflite").read_bytes())
        return 0
    ranges = {
        name: {"min": np.float32(low), "max": np.float32(high)} for name, (low, high) in request["ranges"].items()
    }
    try:
        done = run.quantize(ranges, enable_progress_report=False, enable_progress_bar=False)
    except Exception as error:  # noqa: BLE001 it becomes the answer
        (folder / "error.txt").write_text(f"{type(error).__name__}: {error}".strip(), encoding="utf-8")
        return 1
    result.write_bytes(bytes(done.quantized_model))
    return 0


if __name__ == "__main__":
    sys.exit(main())
