# SPDX-License-Identifier: Apache-2.0
"""The C writer prints nodes as C code that reads back to the same values."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ferrule.codegen.c_writer import C_WRITER
from ferrule.dom import (
    AddressOf,
    ArrayData,
    ArrayType,
    Assign,
    Attribute,
    Binary,
    BinaryOperator,
    Block,
    Call,
    Cast,
    Class,
    Comment,
    Const,
    Declare,
    Dereference,
    Evaluate,
    Expression,
    Function,
    Identifier,
    If,
    Include,
    IncludeKind,
    Index,
    Integer,
    Linkage,
    Member,
    Method,
    Module,
    Not,
    Null,
    Parameter,
    Pointer,
    Return,
    Scalar,
    Statement,
    Struct,
    StructMember,
    StructType,
    Type,
    Variable,
    While,
)
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.rendering import string_literal

X = StructMember("x", Scalar.INT8)
A, B, C = Identifier("a"), Identifier("b"), Identifier("c")


@pytest.mark.parametrize(
    ("type_", "name", "text"),
    [
        (Scalar.INT8, "x", "int8_t x"),
        (Const(Scalar.INT8), "x", "const int8_t x"),
        (Pointer(Const(Scalar.INT8)), "x", "const int8_t *x"),
        (Const(Pointer(Const(Scalar.INT8))), "x", "const int8_t *const x"),
        (Const(Pointer(Scalar.FLOAT32)), "", "float *const"),
        (ArrayType(Const(StructType("s")), 3), "x", "const struct s x[3]"),
        (ArrayType(Pointer(Scalar.CHAR)), "x", "char *x[]"),
        (Pointer(Pointer(Scalar.VOID)), "", "void **"),
    ],
)
def test_declarators(type_: Type, name: str, text: str) -> None:
    assert C_WRITER.declared(type_, name) == text


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Member(Dereference(A), "x"), "a->x"),
        (Member(Index(A, Integer(2)), "x"), "a[2].x"),
        (AddressOf(Index(A, B)), "&a[b]"),
        (Cast(Pointer(Scalar.INT8), AddressOf(Index(A, B))), "(int8_t *)&a[b]"),
        (Binary(BinaryOperator.LESS, A, Binary(BinaryOperator.ADD, B, C)), "a < b + c"),
        (Binary(BinaryOperator.ADD, A, Binary(BinaryOperator.LESS, B, C)), "a + (b < c)"),
        (Binary(BinaryOperator.ADD, Binary(BinaryOperator.ADD, A, B), C), "a + b + c"),
        (Binary(BinaryOperator.ADD, A, Binary(BinaryOperator.ADD, B, C)), "a + (b + c)"),
        (Member(Cast(Pointer(Scalar.INT8), A), "x"), "((int8_t *)a).x"),
        (Index(Dereference(A), B), "(*a)[b]"),
        (Member(AddressOf(A), "x"), "(&a).x"),
        (Not(Binary(BinaryOperator.EQUAL, A, Null())), "!(a == NULL)"),
        (Not(Integer(-3)), "!(-3)"),
        (Call(Member(Dereference(A), "f"), (B, Integer(1, unsigned=True))), "a->f(b, 1U)"),
        (Integer(2**32 - 1, unsigned=True), "4294967295U"),
        (Integer(2**32, unsigned=True), "UINT64_C(4294967296)"),
        (ArrayData(np.array([True, False])), "{1, 0}"),
    ],
)
def test_expressions(node: Expression, text: str) -> None:
    assert C_WRITER.expression(node) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_literals_read_back(value: float) -> None:
    text = C_WRITER.float(np.float32(value))
    assert text.endswith("f")
    assert np.float32(text[:-1]).tobytes() == np.float32(value).tobytes()


def _compiled(tmp_path: Path, cc: tuple[str, ...], text: str) -> ctypes.CDLL:
    source, library = tmp_path / "x.c", tmp_path / "x.so"
    source.write_text(text)
    subprocess.run(
        [*cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", str(source), "-o", str(library)],
        check=True,
    )
    return ctypes.CDLL(str(library))


@pytest.mark.cc
def test_integer_literals_read_back(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    values = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, 2**32, 2**63 - 1, -(2**63), -(2**31) - 1]
    rows = ", ".join(C_WRITER.integer(value) for value in values)
    library = _compiled(tmp_path, host_cc, f"#include <stdint.h>\nconst int64_t x[] = {{{rows}}};\n")
    assert list((ctypes.c_int64 * len(values)).in_dll(library, "x")) == values


@pytest.mark.cc
def test_infinities_and_nan_read_back(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    values = np.array([np.inf, -np.inf, np.nan, -0.0, 1.5], np.float32)
    rows = ", ".join(C_WRITER.literals(values))
    library = _compiled(tmp_path, host_cc, f"const float x[] = {{{rows}, {C_WRITER.float(values[1])}}};\n")
    found = np.frombuffer((ctypes.c_float * 6).in_dll(library, "x"), np.float32)
    assert_array_equal(found, [*values, -np.inf])
    assert np.signbit(found[3])


@pytest.mark.cc
@pytest.mark.parametrize("text", ['say "hi"', "a\\b\n\r\t", "naïve ∂", "??/", "\x01" + "23"])
def test_string_literals_read_back(tmp_path: Path, host_cc: tuple[str, ...], text: str) -> None:
    library = _compiled(tmp_path, host_cc, f"const char x[] = {string_literal(text)};\n")
    assert bytes((ctypes.c_char * (len(text.encode()) + 1)).in_dll(library, "x")) == text.encode() + b"\0"


def _module(*statements: Statement) -> Module:
    run = Function(
        "run",
        Scalar.INT32,
        parameters=(Parameter("n", Scalar.INT32),),
        body=Block(statements),
        linkage=Linkage.EXTERNAL,
        doc="Add up.",
    )
    return Module(
        name="sum",
        doc="A sum.",
        interface_includes=(Include("stdint.h", IncludeKind.STANDARD),),
        interface=(run,),
        implementation=(run,),
    )


@pytest.mark.cc
def test_statements_run(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    total, n = Identifier("total"), Identifier("n")
    module = _module(
        Declare("total", Scalar.INT32, Integer(0)),
        Comment("only for positive numbers"),
        If(
            Binary(BinaryOperator.LESS, n, Integer(0)),
            Block((Return(Integer(-1)),)),
            Block((Assign(total, Integer(100)),)),
        ),
        Block((Assign(total, Binary(BinaryOperator.ADD, total, n)),)),
        While(
            Binary(BinaryOperator.LESS, total, Integer(104)),
            Block((Assign(total, Binary(BinaryOperator.ADD, total, Integer(1))),)),
        ),
        Evaluate(total),
        Return(total),
    )
    (tmp_path / "sum.h").write_text(C_WRITER.header(module, "A banner."))
    source = C_WRITER.source(module, "A banner.").replace("    total;\n", "")  # a statement without effect is a warning
    library = _compiled(tmp_path, host_cc, source)
    assert library.run(5) == 105
    assert library.run(1) == 104
    assert library.run(-5) == -1


def test_headers_declare_and_guard() -> None:
    text = C_WRITER.header(_module(Return(Integer(0))), "A banner.")
    assert "#ifndef SUM_H" in text
    assert "/** Add up. */\nint32_t run(int32_t n);" in text
    assert 'extern "C"' in text


def test_classes_are_refused() -> None:
    item = Class(
        name="Artifact",
        members=(
            Attribute("tensor1", Pointer(Scalar.FLOAT32)),
            Method(name="inference", returns=Scalar.VOID, body=Block(())),
        ),
    )
    module = Module(name="x", doc="", implementation=(item,))
    with pytest.raises(UnsupportedError, match="C has no classes, got Class 'Artifact'"):
        C_WRITER.source(module, "A banner.")


@pytest.mark.parametrize("bad", ["a b", "a;", "1a", "a\n", "é", "", "a/*"])
def test_names_that_are_no_identifiers_are_refused(bad: str) -> None:
    """A backend's document becomes C, so its names may not be anything else."""
    body = Block((Declare(bad or " ", Scalar.INT32),))
    for make in (
        lambda: C_WRITER.expression(Identifier(bad)),
        lambda: C_WRITER.expression(Member(A, bad)),
        lambda: C_WRITER.declared(StructType(bad), "x"),
        lambda: C_WRITER.declared(Scalar.INT32, bad or " "),
        lambda: C_WRITER.header(Module(name="m", doc="", interface=(Struct(bad, (X,)),)), "b"),
        lambda: C_WRITER.source(Module(name="m", doc="", implementation=(Function("f", Scalar.VOID, body=body),)), "b"),
    ):
        with pytest.raises(FerruleError, match="is not an identifier of C"):
            make()


def test_includes_are_paths() -> None:
    for path in ('a.h"\n#define x "', "a b.h", "<x>"):
        with pytest.raises(FerruleError, match="can't be written into an #include"):
            C_WRITER.source(Module(name="m", doc="", implementation_includes=(Include(path),)), "b")


def test_structs_carry_their_documentation() -> None:
    item = Struct("s", (StructMember("x", Scalar.BOOL, doc="Whether."),), doc="A struct.")
    text = C_WRITER.header(Module(name="x", doc="", interface=(item,)), "A banner.")
    assert "/** A struct. */\nstruct s {\n    /** Whether. */\n    bool x;\n};" in text


@pytest.mark.parametrize(("dtype", "per_line"), [("int8", 16), ("int16", 12), ("int32", 6), ("float32", 6)])
def test_rows_of_an_array(dtype: str, per_line: int) -> None:
    values = np.arange(40).astype(dtype)
    table = Variable("t", ArrayType(Scalar.INT32, 40), value=ArrayData(values))
    text = C_WRITER.source(Module(name="m", doc="", implementation=(table,)), "A banner.")
    rows = [len(line.strip(" ,").split(", ")) for line in text.splitlines() if line.startswith("    ")]
    assert rows == [per_line] * (40 // per_line) + [40 % per_line]
