# SPDX-License-Identifier: Apache-2.0
"""Finds the environment variables that the repository's Python code, C code and scripts read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from needs import RARE

ROOT = Path(__file__).parents[2]
FOLDERS = ("sdk/ferrule", "tests", "benchmarks", "examples", "scripts", ".ci")
COMPUTED = {
    "conftest.py: os.environ.pop(name, None)":
        ("COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    "sdk/ferrule/acl/toolchain.py: os.environ.get(variable)": ("ACL_ROOT", "FERRULE_ACL_SYSROOT"),
    "sdk/ferrule/cli/variables.py: os.environ.get(variable.name)": (),  # shown, not used
    "sdk/ferrule/cli/main.py: VARIABLE in os.environ": ("_FERRULE_COMPLETE",),
    "sdk/ferrule/cli/main.py: os.environ[VARIABLE]": ("_FERRULE_COMPLETE",),
    "sdk/ferrule/firmware/platforms/tools.py: os.environ.get(self.variable)":
        ("CMSIS_PATH", "CMSIS_RTX_PATH", "ZEPHYR_BASE"),
    "sdk/ferrule/nativelib.py: os.environ.get(name, '')": (
        "CCC_OVERRIDE_OPTIONS", "COMPILER_PATH", "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "GCC_EXEC_PREFIX",
        "LD_LIBRARY_PATH", "LIBRARY_PATH", "SOURCE_DATE_EPOCH",
    ),
    "sdk/ferrule/record.py: os.environ.get(name, '')": ("FERRULE_BOARDS", "FERRULE_DYNAMIC_BACKENDS"),
    "tests/support/figures_table.py: os.environ.get(self.variable, '')": ("FERRULE_MODELS", "FERRULE_PUBLIC_MODELS"),
    "tests/support/needs.py: os.environ.get(name)": tuple(RARE),
    "tests/support/score_table.py: os.environ.get(suite.variable)":
        ("FERRULE_CMSIS_NN_SOURCE", "FERRULE_TFLM_CASES", "FERRULE_TFLM_SOURCE"),
}  # fmt: skip
"""The variables of places where the name is computed; each name has to occur in the repository as a text."""
OTHERS = {"ID", "VERSION_CODENAME"}
"""Names in scripts that come from a file that the script reads, /etc/os-release."""
_SHELL = re.compile(r"\$\{([A-Z][A-Z0-9_]+)[:}%#]")
_CONSTANT = re.compile(r'^\w*VARIABLE = "([A-Z][A-Z0-9_]*)"$', re.MULTILINE)
"""Constants for names that a parameter may replace, as in the search for dynamic backends."""
_GETENV = re.compile(r"\bgetenv\(\"([A-Z0-9_]+)\"\)")
_SEARCHED = {"get", "pop", "setdefault", "__getitem__"}


def variables() -> dict[str, set[str]]:
    """Return the files that read each variable; a place whose name is computed and not in `COMPUTED` is one itself."""
    found: dict[str, set[str]] = {}
    for path in _files():
        place = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            names = set(_of_python(place, text))
        elif path.suffix in {".c", ".h"}:
            names = set(_GETENV.findall(text))
        else:
            assigned = set(re.findall(r"^\s*(?:export |local )?([A-Z][A-Z0-9_]+)=", text, re.MULTILINE))
            names = {name for name in _SHELL.findall(text) if name not in assigned or f"${{{name}:-" in text}
        for name in {each for key in names for each in COMPUTED.get(key, (key,))} - OTHERS:
            found.setdefault(name, set()).add(place)
    return found


def _files() -> Iterator[Path]:
    yield ROOT / "conftest.py"
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            shell = path.suffix == ".sh" or path.name == "run"
            if path.is_file() and (shell or path.suffix in {".py", ".c", ".h"}) and "__pycache__" not in path.parts:
                yield path


def _of_python(place: str, text: str) -> Iterator[str]:
    yield from _CONSTANT.findall(text)
    if "environ" not in text and "getenv" not in text:
        return
    tree = ast.parse(text)
    constants = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        for key in _keys(node):
            if isinstance(key, ast.Constant):
                yield str(key.value)
            elif isinstance(key, ast.Name) and key.id in constants:
                yield constants[key.id]
            else:
                yield f"{place}: {ast.unparse(node)}"


def _keys(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the names with which a node searches the environment."""
    if isinstance(node, ast.Subscript) and _is_environment(node.value) and isinstance(node.ctx, ast.Load):
        yield node.slice
    elif isinstance(node, ast.Compare) and any(_is_environment(each) for each in node.comparators):
        yield node.left
    elif isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
        environment = _is_environment(node.func.value) and node.func.attr in _SEARCHED
        if environment or (node.func.attr == "getenv" and _is_os(node.func.value)):
            yield node.args[0]


def _is_environment(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ" and _is_os(node.value)


def _is_os(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "os"
