# SPDX-License-Identifier: Apache-2.0
"""The cost of the check of ownership: the CPU time of a run with and without it.

Each row is a model of the folder FERRULE_MODELS on a board. A run starts the engine and executes one sample twice, as
`ferrule run` does; the time of the numpy reference is subtracted. The best of 3 counts. Run it from a checkout:
python benchmarks/ownership.py [model ...]
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import ferrule
from ferrule.graph import Array

MODELS = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
PLACES = (("mps2-an386", "CpuAcc"), ("mps2-an386", "Woofles"), ("mps2-an500", "CpuAcc"), ("mps2-an500", "Woofles"))
REPEATS = 3
TIMEOUT_S = 600.0


def seconds(firmware: ferrule.Firmware, inputs: list[Array], *, check: bool) -> float:
    """Return the CPU time of a run, without that of the reference."""
    start = time.process_time()
    firmware.network.run(inputs)
    reference = time.process_time() - start
    start = time.process_time()
    firmware.run(inputs, check_ownership=check, timeout_s=TIMEOUT_S)
    return time.process_time() - start - reference


def main() -> None:
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        raise SystemExit("set FERRULE_MODELS to the folder with the MLPerf Tiny models")
    for model in sys.argv[1:] or MODELS:
        network = ferrule.load(Path(folder) / f"{model}.tflite")
        inputs = [np.zeros(info.shape, info.dtype.numpy) for info in network.inputs]
        for board, backend in PLACES:
            firmware = ferrule.compile(network, board=board, backends=list(dict.fromkeys([backend, "CpuAcc"])))
            plain = min(seconds(firmware, inputs, check=False) for _ in range(REPEATS))
            checked = min(seconds(firmware, inputs, check=True) for _ in range(REPEATS))
            print(
                f"{model} on {board}, {backend}: {plain:.3f} s, checked {checked:.3f} s, {checked / plain:.2f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
