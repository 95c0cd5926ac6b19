# SPDX-License-Identifier: Apache-2.0
"""Fuzz campaigns over everything that reads untrusted input.

python tests/fuzz.py [--seed 1] [--number 1000000] [--jobs 0] [--state FOLDER] [TARGET ...]
python tests/fuzz.py --each --number 1000000 tflite tflite-calls      a million inputs to each of these targets
python tests/fuzz.py --list
python tests/fuzz.py TARGET --seed 1 --index 4711      repeats one input, without limits

An input fails if it ends with an exception other than FerruleError, takes too long or needs more than 1 GB. `--number`
is the number of inputs to readers, which the targets share; a tenth as many networks go through the planner and the
emitter, and a 500th are built under the sanitizers and compared with numpy. The folder keeps the results of finished
pieces, so that a campaign that was interrupted goes on where it stopped, and summary.json.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from fuzz_campaign import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
