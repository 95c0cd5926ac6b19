# SPDX-License-Identifier: Apache-2.0
"""The command line of tests/conform.py."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from conformance import ENGINES, KERNELS, TICKS_HZ, build, run


def main(description: str | None) -> int:
    """Print the reports; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("kernel", nargs="*", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--tick-hz", type=int, action="append", help="may be repeated; default: 100, 1000, 10000")
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    arguments = parser.parse_args()
    failed = False
    for kernel in arguments.kernel:
        for tick_hz in arguments.tick_hz or TICKS_HZ:
            with tempfile.TemporaryDirectory() as folder:
                report = run(build(kernel, tick_hz, Path(folder)), arguments.engine)
            print(report.text)
            failed |= not report.is_complete or not all(each.is_right for each in report.checks)
    return int(failed)
