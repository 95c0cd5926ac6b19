# SPDX-License-Identifier: Apache-2.0
"""Fakes that users write: found in any format of C, and compiled without warnings as errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from children import ran
from needs import require_cc, require_gcov, require_module

from ferrule import resources
from ferrule.errors import FerruleError
from ferrule.testing import Adapter, BalanceError, Fakes, build_driver
from ferrule.testing.compilation import FAKES, WARNINGS
from ferrule.testing.coverage import coverage

pytestmark = pytest.mark.cc
HEADER = """
#include <stdint.h>
int32_t usual(void *object, uint32_t ticks);
int32_t on_its_own_line(void *object);
int32_t with_its_brace_behind(void *object);
int32_t with_attributes(void *object);
int32_t in_comments(void *object, int32_t (*hook)(void));
int32_t by_a_macro(void *object);
int32_t by_another_macro(void *object);
int32_t call_them(void *object);
void take(void *object);
void give(void *object);
"""
FAKE = """
#include "fake.h"
#include "own.h"
#ifndef TICKS
#error TICKS is missing
#endif
int32_t usual(void *object, uint32_t ticks)
{
    FAKE_CALL(call, object, ticks);
    return fake_end(&call);
}
int32_t
on_its_own_line (void *object)
{
  FAKE_CALL (call, object);

  return fake_end (&call);
}
int32_t with_its_brace_behind(void *object) {
\tint32_t unused;
\tFAKE_CALL(call, object);
\treturn fake_end(&call);
}
__attribute__((noinline)) int32_t with_attributes(
    void *object
) { if (object != (void *)1) { FAKE_CALL(call, object); return fake_end(&call); } return 0; }
int32_t /* the result; */ in_comments(void *object, /* { */ int32_t (*hook)(void)) // a hook
{
    (void)hook; // FAKE_CALL(call, "not_this_one")
    FAKE_CALL( // {
        call, object);
    return fake_end(&call);
}
void take(void *object) { fake_lock(); fake_hold(object, "the %s is taken", "lock"); fake_unlock(); }
void give(void *object) { fake_lock(); fake_give_back(object); fake_unlock(); }
#define RECORDED(name) int32_t name(void *object) { FAKE_CALL(call, object); return fake_end(&call); }
RECORDED(by_a_macro)
#define BEGIN FAKE_CALL_OF(call, "another_name", object)
int32_t by_another_macro(void *object) { BEGIN; return fake_end(&call); }
"""
DRIVER = """
#include "own.h"
int32_t call_them(void *object)
{
    return usual(object, TICKS) + on_its_own_line(object) + with_its_brace_behind(object) + with_attributes(object) +
           in_comments(object, 0) + by_a_macro(object) + by_another_macro(object);
}
"""
NAMES = (
    *("usual", "on_its_own_line", "with_its_brace_behind", "with_attributes", "in_comments", "by_a_macro"),
    "another_name",
)


def written(folder: Path) -> dict[str, Any]:
    """Return the arguments of a build of the driver and its fake."""
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    (folder / "own.h").write_text(HEADER)
    for name, text in (("own_fake.c", FAKE), ("own_driver.c", DRIVER)):
        (folder / name).write_text(text)
    sources = [folder / "own_driver.c", folder / "own_fake.c"]
    return {"sources": sources, "headers": ["own.h"], "include_dirs": [folder], "defines": {"TICKS": 3}}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Adapter[Fakes]:
    """The fake does not compile with the warnings for sources under test, and it needs their macros."""
    return build_driver(**written(tmp_path_factory.mktemp("own")))


@pytest.fixture
def driver(built: Adapter[Fakes]) -> Adapter[Fakes]:
    built.reset()
    return built


def test_a_fake_is_found_however_its_c_is_formatted(driver: Adapter[Fakes]) -> None:
    for number, name in enumerate(NAMES):
        driver.fakes.fail(name, result=10**number)
    assert driver.lib.call_them(driver.ffi.NULL) == 1_111_111
    assert driver.fakes.trace == " ".join(NAMES)
    with pytest.raises(FerruleError, match="no fake function 'not_this_one'"):
        driver.fakes.fail("not_this_one", result=0)


def test_what_a_fake_holds_is_in_the_balance(driver: Adapter[Fakes]) -> None:
    first, second = driver.new("int[1]"), driver.new("int[1]")
    for held in (first, first, second):
        driver.lib.take(held)
    assert driver.fakes.left == ["the lock is taken", "the lock is taken"]
    driver.lib.give(first)
    driver.lib.give(first)
    with pytest.raises(BalanceError, match=r"everything: the lock is taken$"):
        driver.fakes.check_balance()
    driver.lib.give(second)
    driver.fakes.check_balance()


def test_a_source_under_test_stays_strict(tmp_path: Path) -> None:
    options = written(tmp_path)
    options["sources"][0].write_text(DRIVER.replace("TICKS)", "TICKS) + (int16_t)sizeof(object) * 1u"))
    with pytest.raises(FerruleError, match=r"own_driver\.c.*\n?.*conversion"):
        build_driver(**options)


def test_fakes_are_not_counted_as_covered(tmp_path: Path) -> None:
    require_gcov()
    driver = build_driver(**written(tmp_path), coverage=True)
    driver.lib.call_them(driver.ffi.NULL)
    assert list(coverage(driver).files) == ["own_driver.c"]


@pytest.mark.parametrize("platform", ["zephyr", "cmsis"])
def test_the_kits_own_fakes_cause_no_warnings(platform: str, tmp_path: Path) -> None:
    sources = [path for folder in ("host", "device", platform) for path in sorted((FAKES / folder).glob("*.c"))]
    includes = [f"-I{folder}" for folder in (FAKES / "host", FAKES / platform, resources.root() / "include")]
    for source in sources:
        argv = [*require_cc(), "-std=gnu11", *WARNINGS, *includes, "-c", str(source), "-o", str(tmp_path / "it.o")]
        done = ran(argv, timeout=60)
        assert done.returncode == 0, done.stderr
