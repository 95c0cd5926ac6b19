# SPDX-License-Identifier: Apache-2.0
"""Random shapes of each kernel on an emulated board, compared with numpy bit by bit.

python tests/shapes.py --count 10000 --board mps2-an386 --seed 1 --goal speed --toolchain arm-none-eabi-gcc
python tests/shapes.py --each 1000 --board stm32g0b1 --goal any --toolchain any --chosen
                                               1,000 of each layer type; each batch draws its goal and toolchain
python tests/shapes.py --case 'Case(...)'      repeats one shape, as a failure prints it

Each shape is a network of one layer; many share a firmware. Where an operator has several kernels, a shape runs with
each that can run it, unless --chosen is given. The figures at the end are the shapes by type and kernel; a kernel that
is missing there was never chosen. With --state a campaign that was interrupted goes on where it stopped. The first
difference ends the campaign, with the smallest shape that was found for it and the exit status 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from shape_campaign import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
