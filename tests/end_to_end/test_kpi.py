# SPDX-License-Identifier: Apache-2.0
"""The history of the figures that benchmarks/kpi.py keeps."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import kpi

TABLE = {"zig 1.2": {"ic board balanced": {"instructions": 1000, "flash": 2000, "ram": 300}}}
FASTER = {"zig 1.2": {"ic board balanced": {"instructions": 900, "flash": 2000, "ram": 300}}}


def test_each_release_has_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kpi.jsonl"
    for version, table in (("1.0", TABLE), ("1.1", TABLE), ("1.1", FASTER)):
        monkeypatch.setattr(kpi, "read", lambda table=table: table)
        assert kpi.main(["--version", version, "--history", str(path)]) == 0
    assert [each["version"] for each in kpi.load(path)] == ["1.0", "1.1"]
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2
    capsys.readouterr()
    assert kpi.main(["--show", "--history", str(path)]) == 0
    assert "ic board balanced zig 1.2 instructions: 1,000, 900" in capsys.readouterr().out


def test_a_row_that_a_release_lacks_has_no_value() -> None:
    releases = [kpi.release("1.0", "2026-01-02", {}), kpi.release("1.1", "2026-02-03", TABLE)]
    assert "ic board balanced zig 1.2 ram: -, 300" in kpi.history(releases)


def test_an_empty_table_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kpi, "read", dict)
    with pytest.raises(SystemExit, match="has no figures"):
        kpi.main(["--history", str(tmp_path / "kpi.jsonl")])


def test_the_committed_history_can_be_shown() -> None:
    assert kpi.history(kpi.load(kpi.HISTORY))
