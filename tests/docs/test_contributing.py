# SPDX-License-Identifier: Apache-2.0
"""The promises of CONTRIBUTING.md and the maps; hooks and hosted checks run what `make` runs."""

from __future__ import annotations

import re
from pathlib import Path

from children import ran
from cmsis_project import read_yaml
from needs import require_module, require_program
from pages import ROOT

FRAGMENTS = sorted(path for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def first_column(page: Path) -> set[str]:
    """Return the names in the first column of a page's table."""
    return set(re.findall(r"^\| [`\[]([\w.]+)[`\]]", page.read_text(encoding="utf-8"), re.MULTILINE))


def entries(folder: Path) -> set[str]:
    """Return the names in a folder, except its README.md, conftest.py and __pycache__."""
    return {path.name for path in folder.iterdir()} - {"README.md", "conftest.py", "__pycache__"}


def test_the_map_of_the_helpers_names_every_file() -> None:
    assert first_column(ROOT / "tests" / "support" / "README.md") == entries(ROOT / "tests" / "support")


def test_the_list_of_examples_names_every_folder() -> None:
    assert first_column(ROOT / "examples" / "README.md") == entries(ROOT / "examples")


def test_fragments_of_the_change_log() -> None:
    names = re.compile(r"\+[a-z0-9-]+\.(added|changed|fixed|removed)\.md")
    assert not [path.name for path in FRAGMENTS if not names.fullmatch(path.name)]
    assert not [path.name for path in FRAGMENTS if not path.read_text(encoding="utf-8").strip()]


def test_the_change_log_can_be_built() -> None:
    require_module("towncrier", "pip install 'ferrule[dev]'")
    towncrier = require_program("towncrier", "pip install 'ferrule[dev]'")
    argv = [towncrier, "build", "--draft", "--dir", str(ROOT)]
    done = ran(argv, timeout=60)
    assert done.returncode == 0, done.stderr
    for path in FRAGMENTS:
        first = path.read_text(encoding="utf-8").split()[:5]
        assert " ".join(first) in " ".join(done.stdout.split()), path.name


def test_the_hooks_run_what_make_lint_runs() -> None:
    """Each hook runs a target of the Makefile, and together they equal `make lint`."""
    (repo,) = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    parts = re.findall(r"^lint: (.*)$", MAKEFILE, re.MULTILINE)[0].split()
    assert [hook["entry"] for hook in repo["hooks"]] == [f"make {part}" for part in parts]
    for part in parts:
        assert re.search(rf"^{part}:", MAKEFILE, re.MULTILINE)
    for name, hook in (("sdk/ferrule/link/frame.py", 0), ("src_c/device/device.c", 1), ("include/ferrule/link.h", 1)):
        matching = [bool(re.search(each["files"], name)) for each in repo["hooks"]]
        assert matching.index(True) == hook


def test_hosted_checks_run_what_must_hold() -> None:
    workflow = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step][-1] == ".ci/run"
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    targets = {
        word
        for line in re.findall(r"^(?:make|.* \.ci/within\.py) (.*)$", script, re.MULTILINE)
        for word in line.split()
    }
    assert {"lint", "docs", "demo", "test", "test-rest"} <= targets
