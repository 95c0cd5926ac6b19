# SPDX-License-Identifier: Apache-2.0
"""The command line of tests/check_trees.py."""

from __future__ import annotations

import argparse
from pathlib import Path

from children import ran
from trees import changes, trees

ROOT = Path(__file__).resolve().parents[2]


def show() -> int:
    """Print the state of each tree; return 1 if one is not as the tests expect it."""
    width = max(map(len, trees()))
    wrong = 0
    for tree in trees().values():
        state = tree.state()
        wrong += state != ""
        print(f"{tree.variable:{width}}  {state or f'{tree.name} at {tree.revision[:12]}'}")
    return int(wrong > 0)


def advise(commit: str) -> int:
    """Print the tests that the changes since a commit make necessary; return 1 if their trees are not all there."""
    argv = ["git", "-C", str(ROOT), "diff", "--name-only", commit, "--"]
    paths = ran(argv, check=True, timeout=60).stdout.split()
    concerned = [change for change in changes() if change.concerns(paths)]
    if not concerned:
        print("no test with a tree is concerned")
        return 0
    tests = dict.fromkeys(test for change in concerned for test in change.tests)
    print("python -m pytest -q", *tests)
    states = {name: trees()[name].state() for change in concerned for name in change.trees}
    for name, state in states.items():
        if state:
            print(f"{name}: {state}")
    return int(any(states.values()))


def main(description: str | None) -> int:
    """Return the exit status of the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="COMMIT")
    commit = parser.parse_args().since
    return show() if commit is None else advise(commit)
