# SPDX-License-Identifier: Apache-2.0
"""Follows docs/cmsis.md."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from needs import require_cc, require_module

from ferrule.firmware.platforms import platform
from ferrule.resources import root
from ferrule.testing.adapter import build_adapter
from ferrule.testing.compilation import FAKES

DOCUMENT = Path(__file__).parents[2] / "docs" / "cmsis.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
FILE = re.compile(r"```\{code-block\} \w+\n:caption: (\S+)\n(.*?)```", re.DOTALL)
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


@pytest.mark.cc
def test_the_program_compiles(tmp_path: Path) -> None:
    ((name, text),) = FILE.findall(TEXT)
    (tmp_path / name).write_text(text, encoding="utf-8")
    folders = (root() / "include", root() / "platforms" / "cmsis" / "include", FAKES / "cmsis")
    argv = [*require_cc(), *STRICT, "-DFERRULE_CMSIS_RTOS2=1"]
    argv += [*(f"-I{folder}" for folder in folders), "-c", "-o", "program.o", name]
    subprocess.run(argv, cwd=tmp_path, check=True, timeout=60)


@pytest.mark.cc
def test_the_codes_are_as_the_table_has_them() -> None:
    require_module("cffi", "pip install 'ferrule[run]'")
    adapter = build_adapter("cmsis", defines={"FERRULE_CMSIS_RTOS2": 1})
    lib = adapter.lib
    rows = re.findall(r"^\| (.+?) \| (.+?) \| `(os\w+)` \| `(\w+)` \|$", TEXT, re.MULTILINE)
    assert len(rows) == 8
    for driver, driver_status, kernel, kernel_status in rows:
        assert lib.ferrule_cmsis_kernel_status(getattr(lib, kernel)) == getattr(lib, kernel_status), kernel
        name = driver.split("`")[1] if "`" in driver else None
        code = 12345 if name is None else getattr(lib, name)
        assert lib.ferrule_cmsis_driver_status(code) == getattr(lib, driver_status.split("`")[1]), driver


def test_every_macro_is_explained() -> None:
    headers = (root() / "platforms" / "cmsis" / "include").rglob("*.h")
    defined = {name for path in headers for name in re.findall(r"#ifndef (FERRULE_CMSIS_\w+)", path.read_text())}
    explained = set(re.findall(r"^\| `(FERRULE_CMSIS_\w+)` \|", TEXT, re.MULTILINE))
    assert explained == defined


def test_the_platform_is_there() -> None:
    assert "--platform cmsis" in TEXT
    assert platform("cmsis").title.startswith("CMSIS 6")
