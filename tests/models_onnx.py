# SPDX-License-Identifier: Apache-2.0
"""A folder of ONNX models: which of them load, how far they equal onnxruntime, and whether boards are exact.

python tests/models_onnx.py --models FOLDER [--board host] [--board mps2-an386] [--jobs 2] [WORD ...]
python tests/models_onnx.py --models FOLDER --list tests/models_onnx.toml --board mps2-an386 --limit 600

The scripts of tests/exporters write such folders; other models need no more than their .onnx file. onnxruntime runs
each model in the configuration of docs/onnx.md, on the inputs in NAME.npz (input0, input1, ...; the first axis is the
run) or on random ones. Ferrule's numpy kernels run the same inputs: floats must be within the documented tolerance, or
`near`: within 0.1% and 1e-4 of the largest one. Of quantised models the differences are counted. The firmware on each
board, and the runtime with CpuAcc for --board host, must give the bits of the numpy kernels. With WORDs, only models
with all of them in their paths. A table counts the models by each reason for a refusal.

With --list, the models are those of a list of public ones, such as tests/models_onnx.toml, which are found in the
folder by their SHA-256. With --first-fit, each runs on the first of the boards that has room for it.

The exit status is 1 if a file of the list is missing, or a result is wrong or missing; a model that is refused is
neither.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from onnx_table import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
