# SPDX-License-Identifier: Apache-2.0
"""Arm's Ethos-U core driver, unmodified: found by a variable, checked, and brought into a firmware."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.backends.contribution import Contribution, Warnings
from ferrule.errors import FerruleError, MissingToolError
from ferrule.reading import read_bytes, read_text

FOLDER = Path(__file__).parent
VARIABLE = "ETHOSU_DRIVER"
"""The environment variable that names a checkout of the driver."""
HEADER = "ethos_u/arm.h"
CONTEXT = "ethos_u_arm"
"""The tag of the context structure of a device behind Arm's driver."""
HANDLER = "ethos_u_arm_interrupt"
TRIED = {
    "a32a0f94430dcc9467d4f4f647b200a6742fc85e47f24884874a14045e3876cf": "1.0.0 of May 2025",
    "d2d77bdf85bf0b953cc49b48bed1764b9138fae01299ac359e6b18bc92bab64b": "1.0.0 of November 2025",
}
"""Versions of the driver with which Ferrule's tests have passed, by digest; see `ArmDriver.digest`."""
SOURCES = ("src/ethosu_driver.c", "src/ethosu_device_u55_u65.c")
FILES = (
    *SOURCES,
    "include/ethosu_driver.h",
    "include/ethosu_types.h",
    "src/ethosu55_interface.h",
    "src/ethosu65_interface.h",
    "src/ethosu_config_u55.h",
    "src/ethosu_config_u65.h",
    "src/ethosu_device.h",
    "src/ethosu_interface.h",
    "src/ethosu_log.h",
)
"""The files that a build for an Ethos-U55 or U65 reads."""
_PRODUCTS = ("55", "65")
"""The driver's names of the products, by their number in CONFIG."""


@frozen
class ArmDriver:
    """A checkout of the driver whose interface is the one that Ferrule calls."""

    folder: Path
    digest: str
    """SHA-256, in hexadecimal, of the names and contents of the files that a build reads."""

    @property
    def version(self) -> str:
        """The version's name, or "untried" if it is not one of `TRIED`."""
        return TRIED.get(self.digest, "untried")

    def contributions(self, product: int) -> tuple[Contribution, ...]:
        """Return Arm's sources, built for an Ethos-U55 (product 0) or U65 (1), and the shims that they need.

        One firmware has one product: the macros of two differ, which `merged` refuses.
        """
        name = _PRODUCTS[product]
        arm = Contribution(
            name="ethos_u_core_driver",
            folder=self.folder,
            sources=SOURCES,
            include_dirs=("include",),
            defines={
                f"ETHOSU{name}": "",
                "ETHOSU_ARCH": f"u{name}",
                "ETHOSU_LOG_ENABLE": "0",
                "ETHOSU_LOG_SEVERITY": "-1",
            },
            warnings=Warnings.THIRD_PARTY,
            licence="Apache-2.0",
        )
        own = Contribution(
            name=f"backends/{FOLDER.name}",
            folder=FOLDER,
            sources=("src_arm/arm.c", "src_arm/system.c"),
            include_dirs=("src_arm/include",),
            licence="Apache-2.0",
        )
        standard = Contribution(
            name=f"backends/{FOLDER.name}",
            folder=FOLDER,
            include_dirs=("src_arm/standard",),
            warnings=Warnings.THIRD_PARTY,
            licence="Apache-2.0",
        )
        return (arm, own, standard)


def find_arm_driver() -> ArmDriver:
    """Return the checkout that ETHOSU_DRIVER names, with a UserWarning if it is a version that was never tried.

    Raises:
        MissingToolError: the variable is not set.
        FerruleError: it names another folder, or the interface of the driver in it is not the one that Ferrule calls.
    """
    value = os.environ.get("ETHOSU_DRIVER")
    if not value:
        raise MissingToolError(
            f"Arm's driver for the Ethos-U is not part of Ferrule, and {VARIABLE} is not set",
            hint=f'set {VARIABLE} to a checkout of Arm\'s ethos-u-core-driver, or leave out driver = "arm" to use '
            "Ferrule's own driver",
        )
    folder = Path(value).resolve()
    driver = ArmDriver(folder=folder, digest=_digest(folder))
    if driver.digest not in TRIED:
        _check_interface(folder)
        warnings.warn(
            f"{VARIABLE}: the driver in {folder} (digest {driver.digest[:12]}) is none of the versions that Ferrule "
            f"was tried with: {', '.join(TRIED.values())}",
            stacklevel=2,
        )
    return driver


def _digest(folder: Path) -> str:
    sha = hashlib.sha256()
    for name in sorted(FILES):
        try:
            data = read_bytes(folder / name)
        except OSError as error:
            raise FerruleError(
                f"{VARIABLE} is {folder}, which has no readable file {name}: {error.strerror}",
                hint="set it to the folder of ethos-u-core-driver that holds include/ and src/",
            ) from error
        sha.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    return sha.hexdigest()


_DRIVER = "struct ethosu_driver *"
_RANGES = ("const uint64_t *", "const size_t *", "int")
_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "ethosu_init": ("int", _DRIVER, "void *", "const void *", "size_t", "uint32_t", "uint32_t"),
    "ethosu_deinit": ("void", _DRIVER),
    "ethosu_soft_reset": ("int", _DRIVER),
    "ethosu_invoke_async": ("int", _DRIVER, "const void *", "int", "uint64_t *", "const size_t *", "int", "void *"),
    "ethosu_wait": ("int", _DRIVER, "bool"),
    "ethosu_irq_handler": ("void", _DRIVER),
    "ethosu_flush_dcache": ("void", *_RANGES),
    "ethosu_invalidate_dcache": ("void", *_RANGES),
    "ethosu_mutex_create": ("void *",),
    "ethosu_mutex_destroy": ("void", "void *"),
    "ethosu_mutex_lock": ("int", "void *"),
    "ethosu_mutex_unlock": ("int", "void *"),
    "ethosu_semaphore_create": ("void *",),
    "ethosu_semaphore_destroy": ("void", "void *"),
    "ethosu_semaphore_take": ("int", "void *", "uint64_t"),
    "ethosu_semaphore_give": ("int", "void *"),
}
"""The functions that the shims call or replace, each with the types of its result and of its parameters."""
_MEMBERS = {"ethosu_driver": ("job", "power_request_counter"), "ethosu_job": ("state",)}
"""Members of the driver's structures that the shims read."""
_CONSTANTS = ("ETHOSU_JOB_IDLE", "ETHOSU_JOB_RUNNING")


def _check_interface(folder: Path) -> None:
    """Raise FerruleError unless the header declares what the shims call, as they call it."""
    header = folder / "include" / "ethosu_driver.h"
    text = _without_comments(read_text(header, errors="replace"))
    wrong = sorted({*_wrong_functions(text), *_missing_names(text)})
    if wrong:
        raise FerruleError(
            f"{VARIABLE}: {header} has another interface than the one that Ferrule calls: {', '.join(wrong)}",
            hint=f"take a version that was tried: {', '.join(TRIED.values())}",
        )


def _wrong_functions(text: str) -> Iterator[str]:
    for name, types in _FUNCTIONS.items():
        found = re.search(rf"([\w\s*]+?)\b{name}\s*\(([^()]*)\)\s*;", text)
        if found is None:
            yield f"no {name}()"
            continue
        given = [] if found[2].strip() in {"", "void"} else found[2].split(",")
        if (_spaced(found[1]), *map(_type, given)) != types:
            yield f"{name}() of another type"


def _missing_names(text: str) -> Iterator[str]:
    for constant in _CONSTANTS:
        if not re.search(rf"\b{constant}\b", text):
            yield f"no {constant}"
    for struct, members in _MEMBERS.items():
        body = re.search(rf"struct\s+{struct}\s*\{{([^}}]*)\}}", text)
        for member in members:
            if body is None or not re.search(rf"\b{member}\s*;", body[1]):
                yield f"no member {member} of struct {struct}"


@cache
def _type(parameter: str) -> str:
    """Return the type of a named parameter, without the qualifiers of the parameter itself."""
    named = re.sub(r"\w+\s*$", "", parameter.strip())
    pointer = re.sub(r"\*\s*const\s*$", "*", named.strip())
    return _spaced(pointer if "*" in pointer else re.sub(r"\bconst\b", "", pointer))


def _spaced(text: str) -> str:
    """Return a type with one space between its words."""
    return " ".join(text.replace("*", " * ").split())


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", " ", text, flags=re.DOTALL | re.MULTILINE)
