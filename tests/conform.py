# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance program of platforms/conformance with real kernels on an engine, and prints its reports."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from conformance_table import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
