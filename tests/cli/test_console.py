# SPDX-License-Identifier: Apache-2.0
"""The stream for a command's report."""

from __future__ import annotations

import sys

from children import ran

PROGRAM = """
from ferrule.cli.console import output_reserved, report_stream
with output_reserved():
    stream = report_stream()
    print("report", file=stream)
    print("other")
assert stream.closed, "the report's stream is open"
print("after")
"""


def test_the_stream_of_a_report_is_closed_with_the_report() -> None:
    done = ran([sys.executable, "-c", PROGRAM])
    assert (done.stdout, done.stderr) == ("report\nafter\n", "other\n")
