# SPDX-License-Identifier: Apache-2.0
"""Public models that embedded people use, listed in tests/models.toml: which of them load and run exactly.

python tests/models.py --models FOLDER [--results FOLDER] [--board mps2-an386] [--jobs 2] [--sample N] [WORD ...]
python tests/models.py --models FOLDER --audio synthetic --steps 6000 --board-steps 6000 --board mps2-an386 [WORD ...]

The folder (FERRULE_PUBLIC_MODELS) holds the files in any layout, since they are found by their SHA-256. TensorFlow Lite
Micro (the wheel) runs each model on a sequence of inputs, and so do Ferrule's numpy kernels and the firmware on each
board; the outputs are compared with those of TensorFlow Lite Micro. The table of what blocks counts the models by each
reason for a refusal. With WORDs, only models with all of them in repository and path.

With --audio, only models for sound run, on features or spectra of a WAV file or of a synthetic sound; outputs that a
model hands to its next run are fed back. The features need `pip install pymicro-features`.

--list tests/further_models.toml takes the models that were collected later, to judge by.

With --results, each outcome is kept in a folder, and a repeated command runs only what lacks an outcome or failed;
empty the folder after a change of Ferrule. The exit status is 1 if a file is missing, if a result differs or is
missing, or if of the whole collection less than 95 % agree.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from model_table import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
