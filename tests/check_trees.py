# SPDX-License-Identifier: Apache-2.0
"""Checks the trees of other projects that tests need, and says which tests a change makes necessary.

Without arguments, it prints a line for each tree of tests/trees.toml. With --since, it prints the pytest command for
the changes since a commit, and which of their trees are missing here.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from tree_table import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
