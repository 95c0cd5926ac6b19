# SPDX-License-Identifier: Apache-2.0
"""Random flips of single bits in the weights of five float32 firmwares, on an emulated board.

FERRULE_MODELS=models python tests/flips.py --count 1000 --seed 1
FERRULE_MODELS=models python tests/flips.py --count 1000 --seed 1 --natively

A fifth of the flips goes to each model. A flip is missed if a bit of an output changes, or if numpy with this weight
leaves the bound of an output, and the verdict is not `different`; or if nothing changes, and it is not `exact`. A
missed flip is printed, and the exit status is 1. With --natively, the firmware's C runs on this machine with the
flipped weight, which takes less time; the board has run it without a flip, with the same bits.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from flip_campaign import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
