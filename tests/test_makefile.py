# SPDX-License-Identifier: Apache-2.0
"""Each target of the Makefile installs what its recipe imports and runs, in an environment of its own."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from children import ran
from needs import require_module
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
VARIABLES = dict(re.findall(r"^(\w+) *\??= *(.*)$", MAKEFILE, re.MULTILINE))
RULES = re.findall(r"^([\w$()/-]+):(?!=) *(.*)\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
ALWAYS = {"pip"}
"""Distributions that a new virtual environment has."""

BARE = """
import importlib, importlib.abc, runpy, sys

refused = set(sys.argv[1].split(","))

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Absent())
for name in sys.argv[2:]:
    if name.endswith(".py"):
        sys.path.insert(0, str(__import__("pathlib").Path(name).resolve().parent))
        runpy.run_path(name, run_name="imported")
    else:
        importlib.import_module(name)
"""


def expanded(text: str) -> str:
    while re.search(r"\$\((?:PYTEST|DEV|BIN)\)", text):
        text = re.sub(r"\$\((PYTEST|DEV|BIN)\)", lambda found: VARIABLES[found[1]], text)
    return text


RECIPES = {
    target: text for target, _, recipe in RULES if target[0] != "$" and "$(VENV)/bin/" in (text := expanded(recipe))
}


def extras(target: str) -> set[str]:
    """Return the extras that the environment of a target has."""
    (environment,) = re.findall(rf"^{target}: (\$\(VENV\)/\w+)", MAKEFILE, re.MULTILINE)
    (recipe,) = (recipe for name, _, recipe in RULES if name == environment)
    (names,) = re.findall(r"'\.\[(.*)\]'", expanded(recipe))
    return set(names.split(","))


@cache
def requirements() -> tuple[list[str], dict[str, list[str]]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["dependencies"], project["optional-dependencies"]


@cache
def required_by(distribution: str) -> list[Requirement] | None:
    """Return what a distribution states that it requires; None if it is not here."""
    try:
        return [Requirement(each) for each in importlib.metadata.requires(distribution) or []]
    except importlib.metadata.PackageNotFoundError:
        return None


def installed(names: Iterable[str]) -> set[str]:
    """Return the distributions that pip installs for Ferrule with these extras."""
    return _installed(frozenset(names))


@cache
def _installed(names: frozenset[str]) -> set[str]:
    always, optional = requirements()
    left = [Requirement(each) for each in (*always, *(each for name in names for each in optional[name]))]
    found: set[tuple[str, frozenset[str]]] = set()
    while left:
        each = left.pop()
        key = canonicalize_name(each.name), frozenset(each.extras)
        if key in found:
            continue
        found.add(key)
        more = required_by(each.name)
        if more is None:
            require_module(each.name, "make tools")
            continue
        wanted = [{"extra": extra} for extra in (each.extras or {""})]
        left += [
            inner for inner in more if inner.marker is None or any(inner.marker.evaluate(extra) for extra in wanted)
        ]
    return {name for name, _ in found} | ALWAYS | {"ferrule"}


@cache
def owners_of_modules() -> dict[str, set[str]]:
    """Return the distributions that have a module, by its name."""
    found = importlib.metadata.packages_distributions().items()
    return {module: {canonicalize_name(each) for each in owners} for module, owners in found}


@cache
def owners_of_files() -> dict[str, set[str]]:
    """Return the distributions that have a file of a name, by that name."""
    found: dict[str, set[str]] = {}
    for each in importlib.metadata.distributions():
        owner = canonicalize_name(each.metadata["Name"])
        for file in each.files or ():
            found.setdefault(file.name, set()).add(owner)
    return found


def refused(names: Iterable[str]) -> list[str]:
    """Return the modules that are here, but would not be with these extras alone."""
    there = installed(names)
    return sorted(module for module, owners in owners_of_modules().items() if not there & owners)


def imports(target: str) -> list[str]:
    """Return the modules and scripts that a target's recipe imports."""
    found = re.findall(r"\$\(VENV\)/bin/python (?:-m )?(\S+)", RECIPES[target])
    if "sphinx-build" in RECIPES[target]:
        reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
        documented = re.findall(r"automodule:: (\S+)", reference)
        conf = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
        extensions = re.findall(r'"([\w.]+)"', re.findall(r"extensions = \[(.*)\]", conf)[0])
        found += [*documented, *extensions, *re.findall(r'html_theme = "(\w+)"', conf), "ferrule.cli"]
    return [*found, *(["xdist"] if "-n auto" in RECIPES[target] else [])]


def run(names: Iterable[str], what: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Import modules and scripts where only Ferrule with some extras is installed."""
    command = [sys.executable, "-c", BARE, ",".join(refused(names)), *what]
    environment = {"PYTHONPATH": str(ROOT / "tests" / "support"), "PATH": "", "HOME": str(ROOT / "build")}
    return ran(command, cwd=ROOT, env=environment, timeout=300)


def test_the_targets_with_recipes_are_found() -> None:
    assert {"demo", "test", "test-rest", "test-all", "nightly", "lint-python", "docs", "mutants", "fuzz"} <= set(
        RECIPES
    )


@pytest.mark.parametrize("target", RECIPES)
def test_a_target_installs_what_it_imports(target: str) -> None:
    what = imports(target)
    done = run(extras(target), what)
    assert done.returncode == 0, done.stderr


def test_a_package_that_is_not_asked_for_is_not_there() -> None:
    """The documentation imports ferrule.testing, which imports pytest."""
    done = run(extras("docs") - {"testing"}, imports("docs"))
    assert "No module named 'pytest'" in done.stderr


@pytest.mark.parametrize("target", RECIPES)
def test_a_target_installs_the_programs_that_it_runs(target: str) -> None:
    programs = set(re.findall(r"\$\(VENV\)/bin/([\w-]+)", RECIPES[target])) - {"python"}
    owners = {owner for program in programs for owner in owners_of_files().get(program, ())}
    there = installed(extras(target))
    assert len(owners & there) == len(programs)
