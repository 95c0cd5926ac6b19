# SPDX-License-Identifier: Apache-2.0
"""The faults that `make mutants` draws, and a round of mutants in a tree with one module and its test."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from children import ran
from needs import require_program
from source_mutation import Mutant, sites

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tests" / "mutants.py"

PYTHON = '''\
"""Docstring 1 < 2."""

LIMIT: int | None = 3


def clamp(value: int, low: int = 0) -> int:
    if value < low and not value == 7:
        return low
    while True:
        value += 1  # comment 1 + 1
        break
    print(f"{value + 1} é"); print(value << 2)
    if value > 9:
        raise ValueError(value)
    return [each for each in value if each]
'''
PYTHON_MUTANTS = [
    "LIMIT: int | None = (3 + 1)", "LIMIT: int | None = (3 - 1)",
    "def clamp(value: int, low: int = (0 + 1)) -> int:", "def clamp(value: int, low: int = (0 - 1)) -> int:",
    "if not (value < low and not value == 7):", "if value <= low and not value == 7:",
    "if value < low or not value == 7:", "if value < low and bool(value == 7):",
    "if value < low and not value != 7:", "if value < low and not value == (7 + 1):",
    "if value < low and not value == (7 - 1):", "return None", "while not (True):", "while False:",
    "pass # comment 1 + 1", "value += (1 + 1) # comment 1 + 1", "value += (1 - 1) # comment 1 + 1", "pass",
    'pass; print(value << 2)', 'print(f"{value + 1} é"); pass', 'print(f"{value + 1} é"); print(value >> 2)',
    'print(f"{value + 1} é"); print(value << (2 + 1))', 'print(f"{value + 1} é"); print(value << (2 - 1))',
    "if not (value > 9):", "if value >= 9:", "if value > (9 + 1):", "if value > (9 - 1):", "pass", "return None",
    "return [each for each in value if not (each)]",
]  # fmt: skip
PYTHON_CONDITIONS = {
    "if not (value < low and not value == 7):", "if value <= low and not value == 7:",
    "if value < low or not value == 7:", "if value < low and bool(value == 7):",
    "if value < low and not value != 7:", "while not (True):", "if not (value > 9):", "if value >= 9:",
    "return [each for each in value if not (each)]",
}  # fmt: skip

C = """\
/* 1 + 1 == 2; */
#include <stdint.h>
#if A > 1
#define SHIFT 3u
#endif
static int f(const int *p, int n)
{
    int sum = 0x10; // n + 1
    for (int i = 0; i < n; ++i) {
        sum += p[i] * -2;
        x = 2.087e-09;
    }
    if (sum == n && !n) {
        g("a + b", '+');
    }
    return sum >> SHIFT;
}
"""
C_MUTANTS = [
    "#define SHIFT 2u", "#define SHIFT 4u", "int sum = 15; // n + 1", "int sum = 17; // n + 1",
    "for (int i = 1; i < n; ++i) {", "for (int i = 0; i <= n; ++i) {", "for (int i = 0; i < n; --i) {",
    "(void)0;", "sum -= p[i] * -2;", "sum += p[i] / -2;", "sum += p[i] * -1;", "sum += p[i] * -3;",
    "if (!(sum == n && !n)) {", "if (sum != n && !n) {", "if (sum == n || !n) {", "(void)0;", "(void)0;",
    "return sum << SHIFT;",
]  # fmt: skip
C_CONDITIONS = {
    "for (int i = 0; i <= n; ++i) {", "if (!(sum == n && !n)) {", "if (sum != n && !n) {", "if (sum == n || !n) {",
}  # fmt: skip


@pytest.mark.parametrize(
    ("file", "text", "expected", "conditions"),
    [("a.py", PYTHON, PYTHON_MUTANTS, PYTHON_CONDITIONS), ("a.c", C, C_MUTANTS, C_CONDITIONS)],
    ids=["python", "c"],
)
def test_every_mutant_of_a_file(file: str, text: str, expected: list[str], conditions: set[str]) -> None:
    found = sites(file, text)
    assert {each.lines(text)[2] for each in found if each.is_condition} == conditions
    assert sorted(each.lines(text)[2] for each in found) == sorted(expected)
    for each in found:
        changed = each.applied(text)
        number, before, after = each.lines(text)
        assert changed != text
        assert before == " ".join(text.splitlines()[number - 1].split())
        assert after in {" ".join(line.split()) for line in changed.splitlines()}
        if file.endswith(".py"):
            ast.parse(changed)


def test_a_mutant_over_several_lines_shows_all_of_them() -> None:
    text = "x = f(\n    1,\n)\ny = 2\n"
    mutant = Mutant("a.py", 4, text.index(")") + 1, "None")
    assert mutant.lines(text) == (1, "x = f( 1, )", "x = None")


def test_equivalent_mutants_have_their_reason() -> None:
    entries = tomllib.loads((ROOT / "tests" / "equivalent_mutants.toml").read_text(encoding="utf-8"))
    for each in entries.get("equivalent", []):
        assert set(each) == {"file", "before", "after", "reason"}
        assert len(each["reason"]) > 20


MODULE = """\
def tested():
    return True


def untested():
    return True
"""
TEST = """\
from ferrule.small import tested


def test_tested():
    assert tested() is True
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a module, its test, and the script."""
    git = require_program("git", "apt-get install git")
    copied = (
        "mutants.py",
        "support/children.py",
        "support/source_mutation.py",
        "support/mutant_notes.py",
        "support/amounts.py",
        "../sdk/ferrule/_typing.py",
    )
    texts = {
        "sdk/ferrule/__init__.py": "",
        "sdk/ferrule/small.py": MODULE,
        "tests/test_small.py": TEST,
        "tests/equivalent_mutants.toml": (
            '[[equivalent]]\nfile = "sdk/ferrule/small.py"\nbefore = "return True"\n'
            'after = "return None"\nreason = "to see that it is left out"\n'
        ),
        **{f"tests/{name}": (ROOT / "tests" / name).read_text(encoding="utf-8") for name in copied},
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run([git, "init", "-q", "."], cwd=tmp_path, check=True)
    return tmp_path


def a_round(tree: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit status and the output of a round."""
    paths = os.pathsep.join([str(tree / "sdk"), str(tree / "tests" / "support")])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    argv = [sys.executable, "tests/mutants.py", "--jobs", "1", *arguments]
    done = ran(argv, cwd=tree, env=environment)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_round_names_the_survivors(tree: Path) -> None:
    status, output = a_round(tree, "sdk/ferrule/small.py")
    assert status == 1, output
    assert "sdk/ferrule/small.py:6 (passed, 1 files)\n    return True\n    return False\n" in output
    assert "small.py:2 " not in output
    assert output.endswith(
        "1 killed, 0 hung, 1 survived, 0 undecided, 0 discarded; "
        "50.0% of 2 decided mutants were noticed, the goal is 95%\n"
    )
    assert (tree / "sdk/ferrule/small.py").read_text(encoding="utf-8") == MODULE


@pytest.mark.slow
def test_an_interrupted_round_goes_on(tree: Path) -> None:
    arguments = ("--state", str(tree / "state"), "sdk/ferrule/small.py")
    whole = a_round(tree, *arguments)
    lines = (tree / "state").read_text(encoding="utf-8").splitlines(keepends=True)
    assert len(lines) == 2
    (tree / "state").write_text(lines[0], encoding="utf-8")
    assert a_round(tree, *arguments) == whole
    (tree / "tests" / "test_small.py").write_text("def test_tested():\n    assert False\n", encoding="utf-8")
    assert a_round(tree, *arguments) == whole, "a mutant was decided again"


@pytest.mark.slow
def test_a_round_without_survivors(tree: Path) -> None:
    status, output = a_round(tree, "sdk/ferrule/small.py:2")
    assert (status, "100.0% of 1 decided" in output) == (0, True), output


@pytest.mark.slow
def test_a_round_of_conditions_with_and_without_far_tests(tree: Path) -> None:
    test = "from ferrule.small import tested\n\n\ndef test_{0}():\n    assert tested({0}) is {1}\n"
    texts = {
        "sdk/ferrule/small.py": "def tested(value):\n    return value < 2\n",
        "tests/test_small.py": test.format(1, True),
        "tests/far/test_far.py": test.format(2, False),
        "tests/equivalent_mutants.toml": "",
    }
    (tree / "tests" / "far").mkdir()
    for name, text in texts.items():
        (tree / name).write_text(text, encoding="utf-8")
    status, output = a_round(tree, "--conditions", "sdk/ferrule/small.py")
    assert (status, "100.0% of 1 decided" in output) == (0, True), output
    status, output = a_round(tree, "--conditions", "--own", "sdk/ferrule/small.py")
    assert (status, "0.0% of 1 decided" in output) == (1, True), output


@pytest.mark.slow
def test_tests_that_fail_anyway_decide_nothing(tree: Path) -> None:
    (tree / "tests" / "test_small.py").write_text(TEST + "    assert False\n", encoding="utf-8")
    status, output = a_round(tree, "sdk/ferrule/small.py:2")
    assert status == 1, output
    assert "1 survived" in output
    assert "left out, since it fails or takes too long without a fault: tests/test_small.py::test_tested\n" in output


@pytest.mark.slow
def test_tests_that_take_too_long_anyway_decide_nothing(tree: Path) -> None:
    (tree / "tests" / "test_small.py").write_text(f"import time\n{TEST}\n\ntime.sleep(3600)\n", encoding="utf-8")
    status, output = a_round(tree, "--test-limit", "0.5", "sdk/ferrule/small.py:2")
    assert status == 1, output
    assert "1 undecided" in output


@pytest.mark.slow
def test_an_equivalent_mutant_that_is_gone_is_told(tree: Path) -> None:
    path = tree / "tests" / "equivalent_mutants.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("None", "0"), encoding="utf-8")
    status, output = a_round(tree, "sdk/ferrule/small.py")
    assert status == 1
    assert "names mutants that do not exist any more" in output
