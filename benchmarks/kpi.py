# SPDX-License-Identifier: Apache-2.0
"""The history of the figures: one line for each release, in benchmarks/kpi.jsonl.

    python benchmarks/kpi.py [--version V]     appends the figures of tests/figures.toml, with the date and the version
    python benchmarks/kpi.py --show            prints each figure's history

Run it when a release is made, after `python tests/figures.py --update`. A version gets one line: a second one replaces
it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from figures_table import METRICS, Table, read

import ferrule

HISTORY = Path(__file__).resolve().parent / "kpi.jsonl"

Release = Mapping[str, Any]
"""`version`, `date`, and `figures` by toolchain and row."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Append or show, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default=ferrule.__version__)
    parser.add_argument("--show", action="store_true", help="print the history instead")
    parser.add_argument("--history", type=Path, default=HISTORY)
    options = parser.parse_args(arguments)
    if options.show:
        print("\n".join(history(load(options.history))))
        return 0
    table = read()
    if not table:
        sys.exit("tests/figures.toml has no figures: run python tests/figures.py --update")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    releases = [each for each in load(options.history) if each["version"] != options.version]
    releases.append(release(options.version, today, table))
    options.history.write_text("".join(f"{json.dumps(each)}\n" for each in releases), encoding="utf-8")
    print(f"{options.history}: {options.version} of {today}, {sum(map(len, table.values()))} rows")
    return 0


def release(version: str, date: str, table: Table) -> Release:
    """Return a release's line; each row is a list of the figures in the order of METRICS."""
    figures = {
        toolchain: {name: [row[metric] for metric in METRICS] for name, row in rows.items()}
        for toolchain, rows in table.items()
    }
    return {"version": version, "date": date, "metrics": METRICS, "figures": figures}


def load(path: Path) -> list[Release]:
    """Return the releases of a file, the oldest first; none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def history(releases: Sequence[Release]) -> list[str]:
    """Return a line for each row and metric: its value in each release."""
    rows = dict.fromkeys(
        (toolchain, name) for each in releases for toolchain, known in each["figures"].items() for name in known
    )
    lines = ["versions: " + ", ".join(f"{each['version']} ({each['date']})" for each in releases)]
    for toolchain, name in sorted(rows):
        for index, metric in enumerate(METRICS):
            known = [each["figures"].get(toolchain, {}).get(name) for each in releases]
            values = ["-" if row is None else f"{row[index]:,}" for row in known]
            lines.append(f"{name} {toolchain} {metric}: {', '.join(values)}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
