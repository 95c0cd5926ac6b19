# SPDX-License-Identifier: Apache-2.0
"""cppcheck's MISRA addon over the C of this repository and of generated projects, and the list of deviations."""

from __future__ import annotations

import fnmatch
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import device_networks
import small_networks
from children import ran
from needs import require_program

from ferrule import Job, Network, generate, resources
from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends import BackendId, Device

ROOT = resources.root()
DOCUMENT = ROOT / "docs" / "misra.md"
BACKENDS = ("ethos_u", "soft_npu", "uart_woofles", "woofles")
_PARTS = ("include", "src", "src_arm")
TIMEOUT_S = 900
_PREFIX = "misra-c2012-"
_ROW = re.compile(r"^\| (\d+\.\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_SCOPE = re.compile(r"`([^`]+)`")
_STAND_INS = "stand_ins"
_ARM = "sdk/ferrule/backends/ethos_u/src_arm"
_ARM_HEADERS = f"{_STAND_INS}/arm_headers.c"
"""A file with all headers that take the place of a C library's where Arm's driver is compiled."""
_CORE = ("sdk/ferrule/architectures/cortex_m/startup", "sdk/ferrule/architectures/cortex_m/bare_metal")
"""The C that an architecture brings to firmware."""
_INCLUDES = ("include", "src_c/kernels/include", f"{_CORE[0]}/include", "src_c/link")
_ZEPHYR = {
    "CONFIG_FERRULE_UART_RX_BYTES": "64",
    "CONFIG_FERRULE_UART_TX_BYTES": "64",
    "CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS": "1000",
}
_WOOFLES = Device(name="woofles0", backend=BackendId("Woofles"), binding={"use_interrupt": 1})
_NPU = Device(name="npu", backend=BackendId("EthosU"), binding={"use_interrupt": 1})
_ARM_NPU = replace(_NPU, binding={"use_interrupt": 1, "driver": "arm"})
JOBS: dict[str, tuple[Callable[[], Network], Callable[[], Job]]] = {
    "dense": (small_networks.two_by_two, Job),
    "crossing": (device_networks.crossing, device_networks.job),
    "woofles": (device_networks.crossing, lambda: Job(backends=("Woofles", "CpuAcc"), devices=(_WOOFLES,))),
    "ethos_u": (device_networks.crossing, lambda: Job(backends=("EthosU", "CpuAcc"), devices=(_NPU,))),
}
"""Networks of generated projects, and how they are divided between the core and devices."""
ARM_JOBS = {
    "ethos_u_arm": (device_networks.crossing, lambda: Job(backends=("EthosU", "CpuAcc"), devices=(_ARM_NPU,))),
}
"""The same with Arm's driver for Ethos-U, of which ETHOSU_DRIVER must name a checkout."""
PLATFORMS = {"bare-metal": "bare_metal", "cmsis": "cmsis", "zephyr": "zephyr"}
"""Platforms of generated projects, and the folders of their adapters."""


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Hit:
    """A violation that the addon reports."""

    rule: str
    path: str
    """In the repository; or `generated/`, the platform, the network and the path in the project."""
    line: int

    @override
    def __str__(self) -> str:
        return f"{self.path}:{self.line}: rule {self.rule}"


@frozen
class Deviation:
    """A row of docs/misra.md: the violations of a rule that stay in some files."""

    rule: str
    scopes: tuple[str, ...]
    """Patterns of paths; a `*` also stands for slashes."""

    def covers(self, hit: Hit) -> bool:
        """Return whether the row is about this violation."""
        return hit.rule == self.rule and any(fnmatch.fnmatchcase(hit.path, scope) for scope in self.scopes)


def deviations(text: str) -> list[Deviation]:
    """Return the rows of the document's table."""
    return [
        Deviation(rule=rule, scopes=tuple(_SCOPE.findall(scopes)) or ("*",))
        for rule, _, scopes, _ in _ROW.findall(text)
    ]


def tree(folder: Path) -> Path:
    """Return a copy of the repository's C: cppcheck writes files beside the sources."""
    for name in ("include", "src_c", "platforms"):
        shutil.copytree(ROOT / name, folder / name)
    for part in _CORE:
        shutil.copytree(ROOT / part, folder / part)
    for backend in BACKENDS:
        for part in _PARTS:
            source = ROOT / "sdk" / "ferrule" / "backends" / backend / part
            if source.exists():
                shutil.copytree(source, folder / source.relative_to(ROOT))
    for platform in ("cmsis", "zephyr"):
        shutil.copytree(ROOT / "sdk" / "ferrule" / "testing" / "fakes" / platform, folder / _STAND_INS / platform)
    shutil.copy(ROOT / "tests" / "support" / "ethosu_stand_in" / "ethosu_driver.h", folder / _STAND_INS)
    headers = sorted(path.name for path in (folder / _ARM / "standard").glob("*.h"))
    text = "".join(f"#include <{name}>\n" for name in headers)
    (folder / _ARM_HEADERS).write_text(f"#ifdef OF_ARM\n#define ETHOSU_DEVICE_H\n#endif\n{text}", encoding="utf-8")
    return folder


def generated(folder: Path, platform: str, name: str) -> list[str]:
    """Write a project into a copy made by `tree`, and return the paths of its own C files."""
    network, job = (JOBS | ARM_JOBS)[name]
    out = folder / "generated" / platform / name
    project = generate(network(), replace(job(), board="mps2-an386", platform=platform, out=out))
    others = ("lib/", "native/")  # the library, and another program with the same names, as projects with SoftNpu are
    files = [file for file in project.manifest.files if file.endswith(".c") and not file.startswith(others)]
    return [(out / file).relative_to(folder).as_posix() for file in files]


def hits(
    folder: Path,
    files: Sequence[str],
    *,
    platform: str,
    defines: Mapping[str, str] | None = None,
    configurations: int = 12,
) -> set[Hit]:
    """Return the violations in files of a copy made by `tree`, and in the headers that they include.

    cppcheck chooses the configurations, that is, the macros that are defined.

    Raises:
        AssertionError: cppcheck could not read a file.
    """
    cppcheck = require_program("cppcheck", "apt-get install cppcheck")
    includes = [*_INCLUDES, *(f"sdk/ferrule/backends/{backend}/include" for backend in BACKENDS)]
    includes += [_STAND_INS, f"{_ARM}/include", *[f"{_ARM}/standard"] * (_ARM_HEADERS in files)]
    includes += [f"platforms/{platform}/include", f"platforms/{platform}/drivers", f"{_STAND_INS}/{platform}"]
    includes += sorted({Path(file).parent.as_posix() for file in files})
    includes += sorted({Path(file).parents[1].as_posix() for file in files if file.startswith("generated/")})
    given = {**(_ZEPHYR if platform == "zephyr" else {}), **(defines or {})}
    argv = [
        *(cppcheck, "--std=c11", "--addon=misra", "--quiet", "--inline-suppr", "--platform=unix32"),
        *(
            "-UFERRULE_PORT_H",
            "--suppress=missingIncludeSystem",
            "--suppress=toomanyconfigs",
            f"--max-configs={configurations}",
        ),
        *("--template={file}\t{line}\t{id}", "--template-location="),
        *(f"-I{each}" for each in includes),
        *(f"-D{name}={value}" for name, value in given.items()),
        *files,
    ]
    done = ran(argv, cwd=folder, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    found = set()
    for path, line, identifier in (row.split("\t") for row in done.stderr.splitlines() if row):
        assert identifier.startswith(_PREFIX), f"{path}:{line}: {identifier}"
        if not path.startswith(_STAND_INS):
            found.add(Hit(rule=identifier.removeprefix(_PREFIX), path=path, line=int(line)))
    return found


def everything(folder: Path) -> set[Hit]:
    """Return the violations in all C of a copy made by `tree`, and in projects of every kind."""
    found: set[Hit] = set()
    own = sorted(path.relative_to(folder).as_posix() for path in (folder / "src_c").rglob("*.c"))
    own += [path.relative_to(folder).as_posix() for path in sorted((folder / "sdk").rglob("*.c"))]
    found |= hits(folder, own, platform="bare_metal")
    found |= hits(folder, [_ARM_HEADERS], platform="bare_metal")
    configurations: tuple[tuple[str, tuple[dict[str, str], ...]], ...] = (
        ("bare_metal", ({"FERRULE_CLOCK_HZ": "25000000"},)),
        ("zephyr", ({},)),
        ("cmsis", ({"FERRULE_CMSIS_RTOS2": "1"}, {})),
    )
    for platform, variants in configurations:
        adapter = sorted((folder / "platforms" / platform).rglob("*.c"))
        for defines in variants:
            found |= hits(
                folder, [each.relative_to(folder).as_posix() for each in adapter], platform=platform, defines=defines
            )
    return found | projects(folder, JOBS)


def projects(folder: Path, names: Iterable[str]) -> set[Hit]:
    """Return the violations in projects of a copy made by `tree`, for each platform."""
    found: set[Hit] = set()
    for platform, adapter_name in PLATFORMS.items():
        for name in names:
            defines = {"FERRULE_CMSIS_RTOS2": "1"} if platform == "cmsis" else {}
            found |= hits(folder, generated(folder, platform, name), platform=adapter_name, defines=defines)
    return found


def uncovered(found: Iterable[Hit], rows: Sequence[Deviation]) -> list[str]:
    """Return the violations that no row is about."""
    return [str(hit) for hit in sorted(found) if not any(row.covers(hit) for row in rows)]
