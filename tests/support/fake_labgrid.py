# SPDX-License-Identifier: Apache-2.0
"""Plays `labgrid-client` for one lab, a folder: a place is held while the folder has a file with its name.

`fake_labgrid.py -p PLACE acquire|release`. The variable FAKE_LAB names the folder. Each call adds a line to its file
`log`. A file `refuse-release` in the folder makes a release fail as often as the file has lines.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def act(lab: Path, place: str, verb: str) -> str:
    """Acquire or release a place; return the reason why that is not possible, or an empty text."""
    with (lab / "log").open("a") as log:
        log.write(f"{verb} {place}{' PYTHONPATH' if 'PYTHONPATH' in os.environ else ''}\n")
    held = lab / place
    if verb == "acquire":
        try:
            held.touch(exist_ok=False)
        except FileExistsError:
            return f"place {place} is already acquired by other/user"
        return ""
    refusals = lab / "refuse-release"
    if refusals.exists() and (lines := refusals.read_text().splitlines()):
        refusals.write_text("".join(f"{line}\n" for line in lines[1:]))
        return "cannot reach the coordinator"
    if not held.exists():
        return f"place {place} is not acquired"
    held.unlink()
    return ""


if __name__ == "__main__":
    _, option, name, wanted = sys.argv
    assert option == "-p"
    reason = act(Path(os.environ["FAKE_LAB"]), name, wanted)
    if reason:
        print(f"labgrid-client: error: {reason}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
