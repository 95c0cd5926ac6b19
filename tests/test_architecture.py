# SPDX-License-Identifier: Apache-2.0
"""Imports go one way: a package may import only the packages listed before it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "sdk" / "ferrule"

PAGE = PACKAGE.parents[1] / "docs" / "architecture.md"


def order() -> list[list[str]]:
    """Return the rows of the layer list on the page."""
    section = PAGE.read_text(encoding="utf-8").split("## The layers\n")[1]
    listed = section.split("```text\n")[1].split("```")[0]
    return [row.replace(",", " ").split() for row in listed.split("<")]


RANK = {name: rank for rank, row in enumerate(order()) for name in row}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    """Return the names below `ferrule` that a module imports, at any place in it."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("ferrule.")}
    return found


def modules() -> list[Path]:
    """Return the package's modules without the tests in backends' folders, which may import anything."""
    found = (path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
    return sorted(path for path in found if "tests" not in path.relative_to(PACKAGE).parts)


def test_every_package_has_a_rank() -> None:
    tops = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in modules()}
    assert tops == set(RANK)


def test_imports_go_down_only() -> None:
    # the backends' registry lists the shipped backends, and `formats` implements `ferrule.load`
    wrong = []
    for path in modules():
        place = path.relative_to(PACKAGE)
        own = place.parts[0].removesuffix(".py")
        after = {name for name in imported(path) if name != own and RANK.get(name, len(RANK)) > RANK[own]}
        wrong += [f"{place} imports {name}, which is listed after {own}" for name in sorted(after)]
    assert not wrong


def test_only_a_network_in_a_notebook_goes_through_the_facade() -> None:
    found = [
        str(path.relative_to(PACKAGE))
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Import) and any(alias.name == "ferrule" for alias in node.names)
    ]
    assert found == ["network/network.py"]


def test_codegen_knows_backends_through_their_firmware_face_only() -> None:
    allowed = {"ferrule.backends", "ferrule.backends.contribution", "ferrule.backends.firmware"}
    for path in (PACKAGE / "codegen").rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ferrule.backends"):
                assert node.module in allowed, f"{path.name} imports {node.module}"


OWN = re.compile(
    r"cortex|armv\d|thumb|\bnvic\b|systick|\bdwt\b|arm[-_]none[-_]eabi|xpsr|primask|\bbkpt\b|__arm|0xe000_?[0-9a-f]{4}"
    r"|riscv32|\brv32|\bclint\b|\bplic\b|mcause|mtvec",
    re.IGNORECASE,
)
"""What names an architecture: its cores, registers, instructions and compilers."""
ASKS = {
    "backends/cpu_acc": "kernels are written in instructions",
    "backends/target.py": "the kernels' names of cores",
    "boards/allowed.py": "names of compilers' flags",
    "boards/description.py": "names of toolchains",
    "cli": "texts",
    "emulation/renode/cosimulation.py": "a defect of Renode's NVIC",
    "firmware/platforms/cmsis.py": "CMSIS is Cortex-M's",
    "firmware/platforms/cmsis_board.py": "CMSIS is Cortex-M's",
    "firmware/platforms/cmsis_solution.py": "CMSIS is Cortex-M's",
    "firmware/platforms/kernels.py": "the names of kernels' ports",
    "firmware/platforms/tools.py": "the kernels whose ports are those for Cortex-M",
    "firmware/platforms/zephyr_tools.py": "the compiler of Zephyr's boards",
    "firmware/toolchain.py": "a text",
    "firmware/trial.py": "the C library of those kernels, and what unicorn and zig are tried with",
    "link/protocol.py": "the names of counters in the protocol",
    "running/claims.py": "the names of counters in the protocol",
    "report/assembly.py": "the names of counters in the protocol",
    "running/calibration/measurement.py": "a text",
}
"""Modules beside `architectures` that name one, with the reason; each must still do so."""


def named(path: Path) -> list[str]:
    """Return the names and texts in a module's code that belong to an architecture."""
    tree = parsed(path)
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    words: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            words.append(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
            words.append(hex(node.value))
        elif isinstance(node, ast.Name):
            words.append(node.id)
        elif isinstance(node, ast.Attribute):
            words.append(node.attr)
        elif isinstance(node, ast.ImportFrom):
            words += [node.module or "", *(alias.name for alias in node.names)]
    return [word for word in words if OWN.search(word)]


def test_no_other_module_asks_which_architecture_it_is() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): words
        for path in modules()
        if path.relative_to(PACKAGE).parts[0] not in {"architectures", "acl"} and (words := named(path))
    }
    asking = {place: words for place, words in found.items() if not any(place.startswith(known) for known in ASKS)}
    assert not asking
    assert [known for known in ASKS if not any(place.startswith(known) for place in found)] == []


def test_one_header_asks_which_architecture_the_c_is_compiled_for() -> None:
    root = PACKAGE.parents[1]
    asks = re.compile(r"^\s*#\s*(?:el)?if.*\b__(?:arm|ARM|thumb|riscv)", re.MULTILINE)
    folders = ("include/ferrule", "src_c", "platforms")
    found = {
        path.relative_to(root).as_posix()
        for folder in folders
        for path in (root / folder).rglob("*.[ch]")
        if asks.search(path.read_text(encoding="utf-8"))
    }
    kernels = {place for place in found if place.startswith("src_c/kernels/")}
    assert found - kernels == {
        "include/ferrule/core.h",
        "include/ferrule/core/cortex_m.h",
        "platforms/freertos/src/freertos_ports.h",  # the names of the kernel's ports
    }
