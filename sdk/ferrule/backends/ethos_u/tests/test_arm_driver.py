# SPDX-License-Identifier: Apache-2.0
"""Where Arm's driver is looked for, what of it is checked, and what it brings into a firmware."""

from __future__ import annotations

import re
import subprocess
import warnings
from pathlib import Path

import pytest
from needs import require_module, require_variable

from ferrule.backends.contribution import Contribution, Warnings, merged
from ferrule.backends.ethos_u import arm_driver
from ferrule.backends.ethos_u.arm_driver import TRIED, VARIABLE, ArmDriver, find_arm_driver
from ferrule.errors import FerruleError, MissingToolError

HEADER = "include/ethosu_driver.h"
DECLARATIONS = """
#define SOMETHING (1)
enum ethosu_job_state { ETHOSU_JOB_IDLE = 0, ETHOSU_JOB_RUNNING, ETHOSU_JOB_DONE };
struct ethosu_job { volatile enum ethosu_job_state state; /* and more */ };
struct ethosu_driver {
    struct ethosu_job job; // of now
    uint32_t power_request_counter;
};
int ethosu_init(struct ethosu_driver *d, void *const base, const void *fast, const size_t bytes,
                uint32_t secure, uint32_t privileged);
void ethosu_deinit(struct ethosu_driver *d);
int ethosu_soft_reset(struct ethosu_driver *d);
int ethosu_invoke_async(struct ethosu_driver *d, const void *data, const int bytes, uint64_t *const bases,
                        const size_t *sizes, const int count, void *user);
int ethosu_wait(struct ethosu_driver *d, bool block);
void ethosu_irq_handler(struct ethosu_driver *d);
void ethosu_flush_dcache(const uint64_t *bases, const size_t *sizes, int count);
void ethosu_invalidate_dcache(const uint64_t *bases, const size_t *sizes, int count);
void *ethosu_mutex_create(void);
void ethosu_mutex_destroy(void *mutex);
int ethosu_mutex_lock(void *mutex);
int ethosu_mutex_unlock(void *mutex);
void *ethosu_semaphore_create(void);
void ethosu_semaphore_destroy(void *sem);
int ethosu_semaphore_take(void *sem, uint64_t limit);
int ethosu_semaphore_give(void *sem);
"""


def checkout(folder: Path, declarations: str = DECLARATIONS) -> Path:
    """Write a folder that has the files of a driver, and one header with declarations."""
    for name in arm_driver.FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(declarations if name == HEADER else "", encoding="utf-8")
    return folder


def found(monkeypatch: pytest.MonkeyPatch, folder: Path) -> ArmDriver:
    monkeypatch.setenv(VARIABLE, str(folder))
    return find_arm_driver()


def test_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(MissingToolError, match="ETHOSU_DRIVER is not set") as caught:
        find_arm_driver()
    assert "ethos-u-core-driver" in str(caught.value.hint)


@pytest.mark.parametrize("missing", arm_driver.FILES)
def test_another_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    (checkout(tmp_path) / missing).unlink()
    with pytest.raises(FerruleError, match=rf"no readable file {re.escape(missing)}: No such file") as caught:
        found(monkeypatch, tmp_path)
    assert "include/ and src/" in str(caught.value.hint)


def test_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=r"ETHOSU_DRIVER is .*nowhere, which has no readable file"):
        found(monkeypatch, tmp_path / "nowhere")


def test_an_untried_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="none of the versions that Ferrule was tried with: 1.0.0 of May 2025") as seen:
        driver = found(monkeypatch, checkout(tmp_path))
    assert driver.version == "untried"
    assert driver.digest[:12] in str(seen[0].message)


@pytest.mark.parametrize("file", arm_driver.FILES)
def test_each_file_is_in_the_digest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str) -> None:
    with pytest.warns(UserWarning, match="none of the versions"):
        before = found(monkeypatch, checkout(tmp_path))
    with (tmp_path / file).open("a", encoding="utf-8") as stream:
        stream.write("/* changed */\n")
    with pytest.warns(UserWarning, match="none of the versions"):
        assert found(monkeypatch, tmp_path).digest != before.digest


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("int ethosu_wait(struct ethosu_driver *d, bool block);", "", r"no ethosu_wait\(\)"),
        ("bool block", "int block", r"ethosu_wait\(\) of another type"),
        ("int ethosu_wait", "void ethosu_wait", r"ethosu_wait\(\) of another type"),
        ("(const uint64_t *bases, const size_t *sizes, int count);\nvoid *", "(uint32_t *p, size_t n);\nvoid *",
         r"ethosu_invalidate_dcache\(\) of another type"),
        ("int ethosu_semaphore_take(void *sem, uint64_t limit)", "int ethosu_semaphore_take(void *sem)",
         r"ethosu_semaphore_take\(\) of another type"),
        ("int ethosu_semaphore_give(void *sem);", "// int ethosu_semaphore_give(void *sem);",
         r"no ethosu_semaphore_give\(\)"),
        ("ETHOSU_JOB_RUNNING", "ETHOSU_JOB_BUSY", "no ETHOSU_JOB_RUNNING"),
        ("power_request_counter", "power_requests", "no member power_request_counter of struct ethosu_driver"),
        ("struct ethosu_job {", "struct ethosu_work {", "no member state of struct ethosu_job"),
    ],
)  # fmt: skip
def test_another_interface(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert DECLARATIONS.count(old) >= 1
    changed = DECLARATIONS.replace(old, new)
    with pytest.raises(FerruleError, match=rf"another interface than the one that Ferrule calls: {reason}$") as caught:
        found(monkeypatch, checkout(tmp_path, changed))
    assert "a version that was tried: 1.0.0 of May 2025" in str(caught.value.hint)


def contributions(monkeypatch: pytest.MonkeyPatch, folder: Path, product: int = 0) -> tuple[Contribution, ...]:
    with pytest.warns(UserWarning, match="none of the versions"):
        return found(monkeypatch, checkout(folder)).contributions(product)


@pytest.mark.parametrize(("product", "name"), [(0, "55"), (1, "65")])
def test_what_it_brings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, product: int, name: str) -> None:
    parts = merged(contributions(monkeypatch, tmp_path, product))
    (arm,) = (part for part in parts if part.folder == tmp_path.resolve())
    assert arm.warnings is Warnings.THIRD_PARTY
    assert arm.licence == "Apache-2.0"
    assert arm.defines[f"ETHOSU{name}"] == ""
    assert arm.defines["ETHOSU_ARCH"] == f"u{name}"
    assert {"src/ethosu_driver.c", "src/ethosu_log.h", "include/ethosu_types.h"} <= set(arm.files)
    own = [part for part in parts if part is not arm]
    assert {part.folder for part in own} == {arm_driver.FOLDER}
    assert sorted(Path(source).name for part in own for source in part.sources) == ["arm.c", "system.c"]
    assert all(part.warnings is Warnings.OWN for part in own if part.sources)


def test_one_product_per_firmware(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    both = [*contributions(monkeypatch, tmp_path, 0), *contributions(monkeypatch, tmp_path, 1)]
    with pytest.raises(FerruleError, match="define ETHOSU_ARCH differently: 'u55' and 'u65'"):
        merged(both)


def test_a_tried_version(recwarn: pytest.WarningsRecorder) -> None:
    require_variable(VARIABLE)
    driver = find_arm_driver()
    assert driver.version in TRIED.values()
    assert not recwarn.list


def test_the_check_accepts_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions in the list are accepted by their digest, so their interface is otherwise not looked at."""
    require_variable(VARIABLE)
    monkeypatch.setattr(arm_driver, "TRIED", {})
    with pytest.warns(UserWarning, match="none of the versions"):
        find_arm_driver()


PLACES = {
    "nothing": {},
    "a C library": {
        "stdio.h": "extern int *const stdout, *const stderr;\nint fprintf(int *, const char *, ...);\n",
        "stdlib.h": "#include <stddef.h>\nvoid *malloc(size_t);\nvoid free(void *);\n",
        "inttypes.h": '#include <stdint.h>\n#define PRIu32 "lu"\n#define PRIx32 "lx"\n#define PRIx64 "llx"\n',
        "assert.h": "#define assert(x) ((void)(x))\n",
        "cmsis_compiler.h": "#define __WFE() __builtin_trap()\n#define __SEV() __builtin_trap()\n",
    },
}


def preprocessed(folder: Path, place: str, *, in_driver: bool) -> str:
    """Return a function that uses the standard headers' names, after the preprocessor."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    from ferrule.firmware.toolchain import ziglang_program

    zig = ziglang_program()
    assert zig is not None
    for name, text in PLACES[place].items():
        (folder / name).write_text(text, encoding="utf-8")
    program = folder / "program.c"
    program.write_text(
        ("#define ETHOSU_DEVICE_H\n" if in_driver else "")
        + "#include <assert.h>\n#include <cmsis_compiler.h>\n#include <inttypes.h>\n#include <stdio.h>\n"
        "#include <stdlib.h>\n"
        "void *run(uint32_t n)\n{\n    assert(n != 0u);\n    __WFE();\n"
        '    fprintf(stderr, "%" PRIx32, n);\n    free(0);\n    return malloc(n);\n}\n',
        encoding="utf-8",
    )
    flags = ["-target", "thumb-freestanding-eabi", "-mcpu=cortex_m33", "-std=c11", "-ffreestanding", "-w"]
    folders = [f"-isystem{arm_driver.FOLDER / 'src_arm' / 'standard'}", f"-idirafter{folder}"]
    argv = [str(zig), "cc", *flags, *folders, "-E", "-P", str(program)]
    text = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout
    return text[text.index("void *run(uint32_t n)") :]


@pytest.mark.cc
@pytest.mark.parametrize("in_driver", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_the_standard_headers(tmp_path: Path, place: str, in_driver: bool) -> None:
    """The platform's headers come first if there are any; only in the driver itself, some of their names change."""
    body = preprocessed(tmp_path, place, in_driver=in_driver)
    own_library = place == "nothing"
    assert ("wfe" in body) == own_library
    assert ("fprintf(((void *)0)," in body) == own_library
    assert ('"lx"' in body) == (not own_library)
    assert ("(n != 0u) ? (void)0 : __builtin_trap()" in body) == (own_library or in_driver)
    assert ("malloc(n)" in body, "free(0)" in body) == (not in_driver, not in_driver)


def test_no_warning_for_users_of_the_own_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is read only when a device asks for Arm's driver."""
    monkeypatch.setenv(VARIABLE, "/nowhere")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        __import__("ferrule.backends.ethos_u.arm_driver")
