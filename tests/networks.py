# SPDX-License-Identifier: Apache-2.0
"""Random networks over all operators, with state and control flow, compared with numpy layer by layer.

python tests/networks.py --count 1000 --seed 1
python tests/networks.py --seed 1 --first 4711 --count 1 --integers      repeats one network, as a failure prints it

Each network is written to a file and read again, runs a sequence of inputs on the host (CpuAcc, and GpuAcc for the
layers that it takes), in TensorFlow Lite Micro if it runs the model, and with others in the firmware of a board. At the
end are the layers by type, the networks compared, and why others were not. The exit status is 1 if a result differs, or
if a layer type did not occur.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from composed_campaign import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
