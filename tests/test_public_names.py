# SPDX-License-Identifier: Apache-2.0
"""The public names are a promise: a change here is an API change that a reviewer approved."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from children import ran

import ferrule
from ferrule.firmware import JobKeywords

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "api.md"
INTERNAL = (
    "accelerators.py",
    "emulation_speed.py",
    "ethos_u.py",
    "evaluate.py",
    "milliseconds.py",
    "precision_search.py",
    "runtime_overhead.py",
    "scale.py",
    "timing_evidence.py",
)
"""The benchmarks that measure what is no part of the interface."""
USERS = (
    *(ROOT / "docs").rglob("*.md"),
    ROOT / "README.md",
    *(path for suffix in ("py", "md") for path in (ROOT / "examples").rglob(f"*.{suffix}")),
    *(ROOT / "sdk" / "ferrule" / "firmware" / "templates").rglob("*.j2"),
    *(path for path in (ROOT / "benchmarks").rglob("*.py") if path.name not in INTERNAL),
)
IMPORT = re.compile(r"^[ >]*(?:from +(ferrule[\w.]*) +import +\(?([^#\n)]*)|import +(ferrule[\w.]*))", re.MULTILINE)
NAMES = {
    "DataType",
    "Evaluation",
    "FerruleError",
    "Firmware",
    "Job",
    "Network",
    "Quantization",
    "QuantizedModel",
    "RunReport",
    "TensorInfo",
    "Verdict",
    "__version__",
    "backends",
    "boards",
    "compile",
    "evaluate",
    "from_torch",
    "generate",
    "generate_acl",
    "inspect",
    "limits",
    "load",
    "override",
    "quantize",
}
MODULES = {
    "ferrule",
    "ferrule.backends",
    "ferrule.backends.ethos_u",
    "ferrule.backends.woofles",
    "ferrule.boards",
    "ferrule.devices",
    "ferrule.dom",
    "ferrule.emulation",
    "ferrule.emulation.renode",
    "ferrule.errors",
    "ferrule.evaluation.data",
    "ferrule.evaluation.sweep",
    "ferrule.firmware",
    "ferrule.formats",
    "ferrule.formats.hdf5",
    "ferrule.graph",
    "ferrule.link",
    "ferrule.network",
    "ferrule.operators",
    "ferrule.optimizer",
    "ferrule.report",
    "ferrule.runtime",
    "ferrule.testing",
    "ferrule.testing.backends",
    "ferrule.testing.coverage",
}


def rows(heading: str) -> list[str]:
    """Return the code in the first column of the table below a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def imports(text: str, path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the modules that a text imports, each with the name imported from it, or None."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                yield from ((alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from ((node.module, alias.name) for alias in node.names)
        return
    for module, names, plain in IMPORT.findall(text):
        yield from ((module or plain, name.split(" as ")[0].strip() or None) for name in (names or "").split(","))


@cache
def used() -> dict[tuple[str, str | None], Path]:
    """Return each import of ferrule in the material for users, with a file that contains it."""
    found = {}
    for path in USERS:
        text = path.read_text(encoding="utf-8")
        for module, name in imports(text, path):
            if module.split(".")[0] == "ferrule":
                found[module, name] = path.relative_to(ROOT)
    return found


def test_names() -> None:
    assert set(ferrule.__all__) == NAMES
    assert {*(call.split("(")[0] for call in rows("Functions")), *rows("Classes")} == NAMES


@pytest.mark.parametrize("call", rows("Functions"))
def test_calls_on_the_page(call: str) -> None:
    name, shown = call.split("(", 1)
    written = [part.strip() for part in shown.removesuffix(")").split(", ")]
    parameters = inspect.signature(getattr(ferrule, name)).parameters
    for part in written:
        if part not in {"*", "..."}:
            parameter, _, default = part.partition("=")
            found = parameters[parameter].default
            assert (repr(found) if found is not inspect.Parameter.empty else "") == default.replace('"', "'")


def test_every_name_can_be_imported() -> None:
    for name in ferrule.__all__:
        assert getattr(ferrule, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ferrule, "nothing_of_the_kind")


def test_a_fresh_process_shows_the_names_and_imports_none() -> None:
    program = (
        "import sys, ferrule; shown = dir(ferrule); assert set(ferrule.__all__) <= set(shown), shown;"
        "assert 'numpy' not in sys.modules; print(ferrule.boards.board_names()[0], ferrule.backends.backend_ids()[0])"
    )
    done = ran([sys.executable, "-c", program])
    assert (done.returncode, done.stdout) == (0, "microbit CpuAcc\n"), done.stdout + done.stderr


def test_modules() -> None:
    assert set(rows("Modules")) == MODULES


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_has_what_it_lists(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for each in getattr(module, "__all__", ()):
        assert getattr(module, each) is not None


def test_users_are_shown_public_modules_only() -> None:
    private = {f"{place}: {module}" for (module, _), place in used().items() if module not in MODULES}
    assert not private, f"not in docs/api.md: {sorted(private)}"
    assert len(used()) > 100


def test_what_users_are_shown_is_there_and_public() -> None:
    wrong = []
    for (module, name), place in used().items():
        if not name or "{{" in name:  # a name that the template's writer fills in
            continue
        found = importlib.import_module(module)
        submodule = importlib.util.find_spec(f"{module}.{name}") if hasattr(found, "__path__") else None
        if name.startswith("_") or not (hasattr(found, name) or submodule):
            wrong.append(f"{place}: {module}.{name} is not there, or private")
        elif name not in getattr(found, "__all__", [name]) and not submodule:
            wrong.append(f"{place}: {module}.__all__ lacks {name}")
    assert not wrong


def test_the_fields_of_a_job_are_its_keywords_and_on_the_page() -> None:
    names = [field.name for field in fields(ferrule.Job)]
    assert list(JobKeywords.__annotations__) == names
    assert rows("A job") == names
