# SPDX-License-Identifier: Apache-2.0
"""Third parties' test cases, each run as a network of one layer: TFLM's kernel and integration tests, CMSIS-NN's data;
and MLPerf Tiny's own runner, which drives firmware on an emulated board.

python tests/scoreboard.py [SUITE ...] [--word WORD] [--markdown FILE]

A case passes if the outputs of the numpy kernels and of CpuAcc equal the case's (float32: within the tolerance of
docs/operators.md), is refused with a reason, or fails. The sources are not part of the repository: the variables
FERRULE_TFLM_CASES, FERRULE_TFLM_SOURCE, FERRULE_CMSIS_NN_SOURCE and FERRULE_MLPERF_TINY name them
(docs/how-ferrule-is-tested.md). The exit status is 1 if a case fails, if a suite has fewer cases than its least count,
or if a variable is not set.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from score_table import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
