# SPDX-License-Identifier: Apache-2.0
"""Planned times beside emulated ones: cycles of an inference on each core with a model of its cycles.

    FERRULE_MODELS=... python benchmarks/planned_time.py [CORE ...]            prints planned, emulated and their ratio
    FERRULE_MODELS=... python benchmarks/planned_time.py [CORE ...] --update   measures the cores' tables first

With --accesses, --update also counts the accesses to the memories of code and weights; otherwise, it keeps them. The
memories have no wait states. The networks are those of MLPerf Tiny in int8, to whose layers the tables are fitted,
beside those of the corpus, and others that are held out, with the goal `balanced`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from planned_table import (
    BOARDS,
    KIN,
    TOOLCHAINS,
    compare,
    counted,
    fitted,
    fitted_networks,
    measured,
    other_networks,
    write,
)

from ferrule.timing import timed_cores
from ferrule.timing.planned import kernel_timings


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure tables if asked, and compare planned with emulated times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cores", nargs="*", metavar="CORE", help="by default all with a model")
    parser.add_argument("--update", action="store_true", help="measure the tables of the cores anew, and write them")
    parser.add_argument("--accesses", action="store_true", help="with --update: also count accesses, which takes long")
    parser.add_argument("--toolchain", action="append", choices=TOOLCHAINS, help="compare with these alone")
    options = parser.parse_args(arguments)
    cores = options.cores or [core for core in timed_cores() if core in BOARDS]
    for core in cores:
        if options.update:
            known, kin = kernel_timings(core), KIN.get(core)
            known = known if kin is None else kernel_timings(kin)
            accesses = {} if known is None else known.accesses
            if options.accesses and kin is None:
                accesses = counted(core)
            write(fitted(core, [*measured(core)], accesses))
            kernel_timings.cache_clear()
        ratios = []
        print(f"{core}: network, toolchain, planned, emulated, planned / emulated", flush=True)
        networks = [(*each, False) for each in fitted_networks()] + [(*each, True) for each in other_networks(core)]
        for name, network, held_out in networks:
            for toolchain in options.toolchain or TOOLCHAINS:
                found = compare(name, network, core, toolchain, held_out=held_out)
                ratios.append(abs(found.ratio - 1))
                print(f"  {found}", flush=True)
        print(f"  at most {max(ratios):.1%} off, median {statistics.median(ratios):.1%}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
