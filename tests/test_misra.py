# SPDX-License-Identifier: Apache-2.0
"""The C follows the rules of MISRA C that cppcheck's addon checks, except where docs/misra.md names a deviation."""

from __future__ import annotations

import re
from pathlib import Path

import misra
import pytest
from needs import require_module, require_variable

TEXT = misra.DOCUMENT.read_text(encoding="utf-8")
ROWS = misra.deviations(TEXT)
SAMPLE = ("new.c", "src_c/device/device.c", "platforms/bare_metal/src/bare_metal.c")
SAMPLE_OF_A_PROJECT = ("/devices.c", "/ferrule_crossing.c")
NEW = """
int jump(int value);
int jump(int value)
{
    int result = value;
    if (value > 1) {
        goto end;
    }
    result = 1;
end:
    return result;
}
"""


def test_a_sample_of_the_c(tmp_path: Path) -> None:
    """The sample is the device API, an adapter and generated code; a file with a violation shows that it is found."""
    folder = misra.tree(tmp_path)
    (folder / "new.c").write_text(NEW, encoding="utf-8")
    made = [path for path in misra.generated(folder, "bare-metal", "woofles") if path.endswith(SAMPLE_OF_A_PROJECT)]
    files = [*SAMPLE, *made]
    found = misra.hits(folder, files, platform="bare_metal", configurations=1)
    assert misra.uncovered(found, ROWS) == ["new.c:7: rule 15.1"]
    assert {"src_c", "generated", "platforms"} <= {hit.path.partition("/")[0] for hit in found}


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_all_c_and_every_row(tmp_path: Path) -> None:
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")
    found = misra.everything(misra.tree(tmp_path))
    assert misra.uncovered(found, ROWS) == []
    unused = [
        f"{row.rule} {scope}"
        for row in ROWS
        for scope in row.scopes
        if not any(misra.Deviation(rule=row.rule, scopes=(scope,)).covers(hit) for hit in found)
    ]
    assert unused == []


@pytest.mark.nightly
def test_projects_with_arms_driver(tmp_path: Path) -> None:
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")
    require_variable("ETHOSU_DRIVER")
    found = misra.projects(misra.tree(tmp_path), misra.ARM_JOBS)
    assert misra.uncovered(found, ROWS) == []
    assert any(hit.path.startswith("generated/zephyr/ethos_u_arm/") for hit in found)


def test_the_table() -> None:
    """Every row is read, the rules are in order, and no rule occurs twice."""
    table = [line for line in TEXT.splitlines() if re.match(r"\| \d", line)]
    rules = [tuple(map(int, row.rule.split("."))) for row in ROWS]
    assert len(table) == len(ROWS) > 30
    assert rules == sorted(set(rules))
    assert all("`" in line or "everywhere" in line for line in table)


@pytest.mark.parametrize(
    ("path", "rule", "is_covered"),
    [
        ("src_c/a.c", "15.5", True),
        ("src_c/a.c", "15.1", False),
        ("b/a.c", "15.5", False),
        ("src_c/x/y.c", "15.5", True),
    ],
)
def test_a_row_covers_its_rule_in_its_files(path: str, rule: str, is_covered: bool) -> None:
    row = misra.deviations("| 15.5 | one return | `src_c/*` | Because. |")
    assert (misra.uncovered([misra.Hit(rule=rule, path=path, line=3)], row) == []) is is_covered
