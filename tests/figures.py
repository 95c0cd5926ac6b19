# SPDX-License-Identifier: Apache-2.0
"""Exact figures of public models' firmware, compared with the committed table tests/figures.toml.

FERRULE_MODELS is a folder with the models of MLPerf Tiny, FERRULE_PUBLIC_MODELS one with the others, in any layout.

FERRULE_MODELS=... python tests/figures.py [WORD ...]            compares, for rows with all words, such as: ic zig
FERRULE_MODELS=... python tests/figures.py [WORD ...] --update   writes the figures into the table

The exit status is 1 if a figure has risen by half a percent or more and is not written. A test compares the table with
the limits that public models have for each multiply-accumulate.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from figures_table import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
