# SPDX-License-Identifier: Apache-2.0
"""The reader of the conformance program's reports: what is not a complete report does not pass for one."""

from __future__ import annotations

import pytest
from conformance import Check, Report

TEXT = """\
conformance of Kernel 1, ticks of 1000 Hz
note   begin.bytes of a handle: 88
ok     begin.init: OK (OK)
FAILED time.wait in us: 30987 (30000..30400)
end of 2 checks, 1 failed
"""


def test_a_report_is_read() -> None:
    report = Report.read(TEXT)
    assert report.is_complete
    assert report.notes == {"begin.bytes of a handle": "88"}
    assert report.group("begin") == (Check(group="begin", name="init", is_right=True, found="OK", expected="OK"),)
    (wrong,) = report.group("time")
    assert not wrong.is_right
    assert str(wrong) == "time.wait in us: 30987, expected 30000..30400"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("end of 2 checks, 1 failed\n", ""),
        ("2 checks", "3 checks"),
        ("1 failed", "0 failed"),
        ("ok     begin.init: OK (OK)\n", ""),
        ("FAILED", "failed"),
        ("OK (OK)\n", "OK (OK)\nfault\n"),
    ],
)
def test_an_incomplete_report_is_none(old: str, new: str) -> None:
    assert TEXT.count(old) >= 1
    assert not Report.read(TEXT.replace(old, new, 1)).is_complete
