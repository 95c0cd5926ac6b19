# SPDX-License-Identifier: Apache-2.0
"""The declarations extracted from headers for cffi."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import require_cc, require_module

from ferrule.errors import FerruleError
from ferrule.nativelib import CompilationError, host_compiler
from ferrule.testing.declarations import _integer, _split, _statements, declare, declared

HEADER = """
#ifndef IT_H
#define IT_H
#include <stdbool.h>
#include <stdint.h>
#include "other.h"
#define MASK (0xF0u | 1 << 2)
#define NEGATIVE (-3)
#define TEXT "text"
#define CALL(x) (x)
#define ALIAS OTHER
#define SUM (OTHER + 1L)
_Static_assert(1, "nothing; to { see");
typedef struct { uint32_t low : 4; uint32_t rest : 28; } bits_t;
struct __attribute__((aligned(8))) thing { int (*call)(void *, bool); const char *name; };
extern const struct thing a_thing;
_Alignas(16) extern const uint8_t bytes[40];
static const int hidden = 3;
static inline int twice(int x) { if (x) { return 2 * x; } return 0; }
int function(struct thing *thing, uint8_t values[4]) __attribute__((nonnull));
inline int more(void) { return 1; }
enum colour { RED, GREEN = MASK };
#endif
"""


@pytest.fixture
def cdef_command(tmp_path: Path) -> list[str]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    (tmp_path / "it.h").write_text(HEADER)
    (tmp_path / "other.h").write_text("#define OTHER 7\nint other(void);\n")
    return [*host_compiler("a test"), f"-I{tmp_path}"]


@pytest.fixture
def cdef(cdef_command: list[str]) -> str:
    return "\n".join(line for line, _ in declared(cdef_command, ["it.h"], title="it"))


@pytest.mark.cc
def test_declarations(cdef: str) -> None:
    lines = cdef.splitlines()
    defines = {line for line in lines if line.startswith("#")}
    assert defines == {
        *("#define MASK 244", "#define NEGATIVE -3", "#define OTHER 7", "#define ALIAS 7", "#define SUM 8"),
    }
    assert [line.replace(" )", ")") for line in lines if not line.startswith("#")] == [
        "int other(void);",
        "typedef struct { uint32_t low : 4; uint32_t rest : 28; } bits_t;",
        "struct thing { int (*call)(void *, _Bool); const char *name; };",
        "extern struct thing a_thing;",
        "extern uint8_t bytes[40];",
        "int function(struct thing *thing, uint8_t values[4]);",
        "enum colour { RED, GREEN = (0xF0u | 1 << 2) };",
    ]


@pytest.mark.cc
def test_cffi_takes_them(cdef: str) -> None:
    from cffi import FFI

    ffi = FFI()
    ffi.cdef(cdef)
    assert ffi.sizeof("bits_t") == 4
    assert ffi.typeof("enum colour").relements == {"RED": 0, "GREEN": 244}


@pytest.mark.cc
def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    require_cc()
    with pytest.raises(CompilationError, match=r"^can't preprocess it: '?missing\.h'?:? (No such|file not)") as caught:
        declared([*host_compiler("a test")], ["missing.h"], title="it")
    assert "stand-in" in (caught.value.hint or "")
    with pytest.raises(CompilationError, match="can't preprocess it"):
        declared([str(tmp_path / "no_compiler")], ["missing.h"], title="it")


KERNEL = """
typedef int base_t;
struct __attribute__((packed,
                      aligned(4))) task { base_t priority; };
static inline void
yield(void)
{
    __asm__ volatile("svc 0");
}

#define LONG_AGO 3
base_t task_delay(struct task *task) __attribute__((
    nonnull));
%s
base_t task_start(struct task *task);
"""


@pytest.mark.cc
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('register struct task *current_task __asm__("r9");', r"struct task \*current_task __asm__"),
        ("_Atomic(int) now;", r"_Atomic\(int\) now"),
        ("__int128 wide;", "__int128 wide"),
        ("typeof(int *) pointer;", r"typeof\(int \*\) pointer"),
        ("int (^block)(void);", r"int \(\^block\)\(void\)"),
        ("base_t __attribute__((aligned(4)) broken);", "base_t"),
    ],
)
def test_a_header_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, line: str, reason: str) -> None:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    from cffi import FFI

    (tmp_path / "kernel.h").write_text(KERNEL % line)
    (tmp_path / "rtos.h").write_text('#include "kernel.h"\nint rtos(void);\n')
    where = rf"{tmp_path / 'kernel.h'}:14: "
    with pytest.raises(
        FerruleError, match=rf"^it can't be declared to Python: {where}cffi can't read '.*{reason}"
    ) as e:
        declare(FFI(), [*host_compiler("a test"), f"-I{tmp_path}"], ["rtos.h"], title="it")
    assert "include_dirs" in (e.value.hint or "")
    (tmp_path / "kernel.h").write_text(KERNEL % "#error needs arm-none-eabi-gcc")
    with pytest.raises(FerruleError, match=rf"^can't preprocess it: {where}(#error )?needs arm-none-eabi-gcc$"):
        declare(FFI(), [*host_compiler("a test"), f"-I{tmp_path}"], ["rtos.h"], title="it")


@pytest.mark.cc
def test_a_declaration_that_only_this_interface_refuses(cdef_command: list[str]) -> None:
    from cffi import FFI

    ffi = FFI()
    ffi.cdef("struct thing { int other; };")
    with pytest.raises(FerruleError, match="can't be declared to Python"):
        declare(ffi, cdef_command, ["it.h"], title="it")


@given(st.text(alphabet='(){};=,* \n#"x1_<>3', max_size=60))
def test_any_text_is_split(text: str) -> None:
    own, origins, macros = _split(text)
    assert all(0 <= line < len(origins) for _, line in _statements(own))
    assert all(macro.isidentifier() for macro in macros)


@given(st.integers(0, 2**32), st.integers(0, 31), st.sampled_from("+-*|&^"))
def test_integers(first: int, second: int, operation: str) -> None:
    expected = eval(f"{first} {operation} ({second} << 2)")  # noqa: S307 numbers
    assert _integer(f"({first}UL {operation} ({second}u << 2))") == expected


@pytest.mark.parametrize(
    "text", ["", "x", "1.5", '"a"', "f(1)", "1 / 2", "(", "sizeof(int)", "[1]", "1 if 1 else 2", "1 << 65"]
)
def test_what_is_no_integer(text: str) -> None:
    assert _integer(text) is None
