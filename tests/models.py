# SPDX-License-Identifier: Apache-2.0
"""Public models that embedded people use, listed in tests/models.toml: which of them load and run exactly.

python tests/models.py --models FOLDER [--jobs 2] [--board mps2-an386] [WORD ...]

The folder (FERRULE_PUBLIC_MODELS) holds the files in any layout, since they are found by their SHA-256. TensorFlow Lite
Micro (the wheel) runs each model on a sequence of inputs, and so does Ferrule; the outputs are compared. The table of
what blocks counts the models by each reason for a refusal. With WORDs, only models with all of them in repository and
path. The exit status is 1 if a file is missing, or if a result differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from public_models import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
