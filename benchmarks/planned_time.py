# SPDX-License-Identifier: Apache-2.0
"""Planned times beside emulated ones: cycles of an inference on each core with a model of its cycles.

    FERRULE_MODELS=... python benchmarks/planned_time.py [CORE ...]            prints planned, emulated and their ratio
    FERRULE_MODELS=... python benchmarks/planned_time.py [CORE ...] --update   measures the cores' tables first

With --accesses, --update also counts the accesses to the memories of code and weights; otherwise, it keeps them. The
memories have no wait states. The networks are those of MLPerf Tiny in int8, to whose layers the tables are fitted,
beside those of the corpus, and others that are held out, with the goal `balanced`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from planned_table import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
