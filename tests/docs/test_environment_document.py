# SPDX-License-Identifier: Apache-2.0
"""docs/environment.md has the environment variables that the repository reads, and no others."""

from __future__ import annotations

import re

from environment_variables import COMPUTED, ROOT, variables

from ferrule.cli.variables import VARIABLES

PAGE = ROOT / "docs" / "environment.md"
ELSEWHERE = {"OCL_ICD_VENDORS", "TMPDIR"}
"""Variables that only libraries read."""


def _documented() -> set[str]:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    paragraphs = re.findall(r"^[^|#].*$", text, re.MULTILINE)
    return {name for part in (*rows, *paragraphs) for name in re.findall(r"`(_?[A-Z][A-Z0-9_]+)`", part)}


def test_every_variable_is_on_the_page() -> None:
    found = variables()
    missing = {name: sorted(places) for name, places in found.items() if name not in _documented()}
    assert missing == {}, "add them to docs/environment.md; a computed name also to COMPUTED"
    assert _documented() - set(found) == ELSEWHERE


def test_the_doctor_knows_what_users_may_set() -> None:
    """`ferrule doctor` lists the page's variables except those of the tests, with what reads them."""
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \| ", text[: text.index("## Tests")], re.MULTILINE)
    expected = {
        name: reader.replace("`", "") for names, reader in rows for name in re.findall(r"`(_?[A-Z][A-Z0-9_]+)`", names)
    }
    assert {variable.name: variable.reader for variable in VARIABLES} == expected


def test_computed_names_are_in_the_code() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "sdk").rglob("*.py"))
    code += "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "support").glob("*.py"))
    code += (ROOT / "tests" / "trees.toml").read_text(encoding="utf-8")
    assert {name for names in COMPUTED.values() for name in names if f'"{name}"' not in code} == set()
