# SPDX-License-Identifier: Apache-2.0
"""tests/trees.toml names every tree that a test needs, and the pages and the script agree with it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from children import ran
from needs import require_program
from trees import Tree, changes, trees

ROOT = Path(__file__).parents[1]
NEEDED = re.compile(r'require_variable\("(\w+)"\)')
NOT_A_CHECKOUT = {"CMSIS_SCHEMAS", "CMSIS_TOOLBOX", "FERRULE_AXE", "FERRULE_CHROMIUM", "FERRULE_MODELS"}
NOT_A_CHECKOUT |= {"FERRULE_PUBLIC_MODELS", "FERRULE_SCHEMAS", "RENODE"}


def tree(**changed: object) -> Tree:
    values: dict[str, object] = {
        "name": "Kernel",
        "variable": "KERNEL_PATH",
        "repository": "example.org/kernel",
        "revision": "0" * 40,
        "files": ("tasks.c",),
        "versions": None,
        "source": None,
    }
    return Tree(**(values | changed))  # type: ignore[arg-type]


def git(folder: Path, *arguments: str) -> str:
    argv = [require_program("git", "apt-get install git"), "-C", str(folder), "-c", "user.name=a"]
    argv += ["-c", "user.email=a@example.org", *arguments]
    return ran(argv, check=True, timeout=60).stdout.strip()


def test_every_checkout_that_a_test_needs_is_listed() -> None:
    named = {
        name
        for folder in ("tests", "sdk")
        for path in (ROOT / folder).rglob("*.py")
        for name in NEEDED.findall(path.read_text(encoding="utf-8"))
    }
    assert named - NOT_A_CHECKOUT <= set(trees())


def test_a_tree_states_what_a_reader_needs() -> None:
    for each in trees().values():
        assert re.fullmatch(r"[0-9a-f]{40}", each.revision), each.name
        assert each.repository.startswith("github.com/")
        assert each.files
    assert trees()["FREERTOS_KERNEL_PATH"].value == ("a checkout of github.com/FreeRTOS/FreeRTOS-Kernel, 11 or later")


def test_changes_name_what_exists() -> None:
    for change in changes():
        assert set(change.trees) <= set(trees())
        for path in (*change.of, *change.tests):
            assert (ROOT / path).exists(), path


def test_a_change_concerns_what_is_below_it() -> None:
    (first, *_) = changes()
    assert first.concerns(["docs/a.md", f"{first.of[0]}/device.c"])
    assert first.concerns([first.of[0]])
    assert not first.concerns([f"{first.of[0]}s/device.c", "docs/a.md"])


def test_contributing_has_the_same_rows() -> None:
    text = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Trees of other projects")[1].split("\n## ")[0]
    )
    rows = [
        tuple(tuple(re.findall(r"`([^`]+)`", cell)) for cell in row.split(" | "))
        for row in re.findall(r"^\| (`.*) \|$", text, re.MULTILINE)
    ]
    assert rows == [(change.of, change.trees, change.tests) for change in changes()]


def test_a_variable_that_is_not_set() -> None:
    assert tree().state({}) == "not set"
    assert tree().state({"KERNEL_PATH": ""}) == "not set"


def test_a_tree_without_a_file(tmp_path: Path) -> None:
    assert tree().state({"KERNEL_PATH": str(tmp_path)}) == f"{tmp_path} lacks tasks.c"


def test_a_folder_in_another_repository_has_no_revision(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    inner = tmp_path / "kernel"
    inner.mkdir()
    (inner / "tasks.c").touch()
    assert "its revision is unknown" in tree().state({"KERNEL_PATH": str(inner)})


def test_the_revision_is_compared(tmp_path: Path) -> None:
    (tmp_path / "tasks.c").touch()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "tasks.c")
    git(tmp_path, "commit", "-q", "-m", "one")
    revision = git(tmp_path, "rev-parse", "HEAD")
    environment = {"KERNEL_PATH": str(tmp_path)}
    assert tree(revision=revision).state(environment) == ""
    assert tree().state(environment) == f"{tmp_path} is at {revision[:12]}, the tests passed with {'0' * 12}"


def run_script(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(ROOT / "tests" / "check_trees.py"), *arguments]
    path = str(Path(require_program("git", "apt-get install git")).parent)
    return ran(argv, env={"PATH": path, **environment}, timeout=60)


def test_the_script_lists_the_trees(tmp_path: Path) -> None:
    done = run_script(THREADX_PATH=str(tmp_path))
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(trees())
    assert re.search(rf"^THREADX_PATH +{re.escape(str(tmp_path))} lacks common/inc/tx_api.h", done.stdout, re.MULTILINE)
    assert re.search(r"^CMSIS_PATH +not set$", done.stdout, re.MULTILINE)


def test_the_script_names_the_tests_of_a_change() -> None:
    empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name of the tree without files
    done = run_script("--since", empty)
    assert done.returncode == 1
    first, *missing = done.stdout.splitlines()
    assert first.startswith("python -m pytest -q tests/platforms/conformance ")
    assert {line.split(":")[0] for line in missing} == {name for change in changes() for name in change.trees}


@pytest.mark.parametrize("variable", ["CMSIS_PATH", "CMSIS_RTX_PATH", "ZEPHYR_BASE"])
def test_the_product_names_the_same_repositories(variable: str) -> None:
    from ferrule.firmware.platforms.cmsis import CMSIS_PLATFORM
    from ferrule.firmware.platforms.zephyr_tools import ZephyrTools

    needs = {need.name: need.remedy for tools in (CMSIS_PLATFORM.tools, ZephyrTools()) for need in tools.needs()}
    words = trees()[variable].repository.removeprefix("github.com/").split("/")[-1]
    assert words.lower() in needs[variable].lower()
