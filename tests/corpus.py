# SPDX-License-Identifier: Apache-2.0
"""Exact instructions of each shape of the corpus, beside CMSIS-NN's and those of the table tests/corpus.toml.

python tests/corpus.py [WORD ...]            compares, for rows with all words, such as: m4 int8
python tests/corpus.py [WORD ...] --update   writes the figures into the table
python tests/corpus.py --picture             draws docs/pictures/corpus.svg of the table

A row is a core, a kind of data and a shape. Each is a layer of one network for each core, kind and toolchain, built for
the goal `speed`, and counted by unicorn, or by QEMU (within 40) on Cortex-M55. The exit status is 1 if an output
differs from the reference, a figure has risen by one percent and is not written, or a shape takes more than 0.6 times
CMSIS-NN's instructions and is not in the table's list of those that do.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from corpus_table import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
