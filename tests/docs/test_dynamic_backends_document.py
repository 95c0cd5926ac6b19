# SPDX-License-Identifier: Apache-2.0
"""Builds and tests the backend of docs/dynamic_backends.md by its instructions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ferrule import resources
from ferrule.backends.dynamic import Reason
from ferrule.testing.backends import BackendFamily, Subject

pytestmark = pytest.mark.cc
TEXT = (Path(__file__).parents[2] / "docs" / "dynamic_backends.md").read_text(encoding="utf-8")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


@pytest.fixture(scope="session")
def built(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the shared object that the page's command builds."""
    folder = tmp_path_factory.mktemp("document")
    (source,) = re.findall(r":caption: acme_npu\.c\n(.*?)```", TEXT, re.DOTALL)
    (folder / "acme_npu.c").write_text(source)
    (line,) = re.findall(r"^cc (.*)$", TEXT, re.MULTILINE)
    arguments = line.replace('"$include"', str(resources.root() / "include")).split()
    subprocess.run([*host_cc, *WARNINGS, *arguments], cwd=folder, check=True)
    return folder


class TestAcmeNpu(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, built: Path) -> Subject:
        return Subject.dynamic("AcmeNpu", built)


def test_every_reason_code_is_explained() -> None:
    table = TEXT.split("## What is refused", 1)[1].split("## Lifetime", 1)[0]
    explained = set(re.findall(r"`([a-z-]+)`", "\n".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))))
    assert explained == {reason.value for reason in Reason} - {""}
