# SPDX-License-Identifier: Apache-2.0
"""The C++ writer spells every node of the document model as C++14; the C writer refuses those that C lacks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from needs import require_cxx

from ferrule import dom
from ferrule.codegen.cpp_writer import CppWriter
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayData,
    ArrayType,
    Assign,
    Attribute,
    Binary,
    BinaryOperator,
    Block,
    Boolean,
    Call,
    Cast,
    Class,
    ClassMember,
    ClassType,
    Comment,
    Const,
    Construct,
    Constructor,
    Declaration,
    Declare,
    Dereference,
    Destructor,
    Enumeration,
    Enumerator,
    Evaluate,
    Expression,
    Field,
    Float,
    Function,
    Identifier,
    If,
    Include,
    IncludeKind,
    Index,
    Initialiser,
    Integer,
    Linkage,
    Member,
    Method,
    Module,
    Null,
    Parameter,
    Pointer,
    QualifiedName,
    Reference,
    Return,
    Scalar,
    Section,
    Statement,
    String,
    Struct,
    StructMember,
    StructType,
    Type,
    Unary,
    UnaryOperator,
    Variable,
    Visibility,
)
from ferrule.resources import root

CPP = CppWriter()
STRING = ClassType("string", ("std",))
FLOATS = ClassType("vector", ("std",), (Scalar.FLOAT32,))
NPOS = QualifiedName(("std", "string"), "npos")
PATH = Parameter(name="path", type=Reference(Const(STRING)))
SUM = Identifier("_sum")


def _standard(*paths: str) -> tuple[Include, ...]:
    return tuple(Include(path=path, kind=IncludeKind.STANDARD) for path in paths)


def _binary(operator: BinaryOperator, left: Expression, right: Expression | int) -> Binary:
    return Binary(operator, left, Integer(right) if isinstance(right, int) else right)


def _method(name: str, arguments: tuple[Expression, ...] = ()) -> Call:
    return Call(Member(Identifier("_text"), name), arguments)


def _total() -> Block:
    """Return the body of a method that has every kind of statement."""
    x, total = Identifier("x"), Identifier("total")
    add = Assign(total, _binary(BinaryOperator.ADD, total, Index(Identifier("table"), Integer(2))))
    wide = _binary(BinaryOperator.OR, _binary(BinaryOperator.LESS, x, 3), _binary(BinaryOperator.NOT_EQUAL, x, 1))
    return Block(
        (
            Comment("This sum is of a table */ and ends no comment."),
            Declare("total", Scalar.INT32, Integer(0)),
            Declare("copy", Const(FLOATS), Construct(FLOATS, (Aggregate((Field(Float(1.5)), Field(Float(-2.0)))),))),
            Declare("none", Const(STRING), Construct(STRING)),
            Declare("part", STRING, Construct(STRING, (Construct(STRING, (String("abc"),)),))),
            Declare("point", StructType("point"), Aggregate((Field(Integer(1)), Field(Null())))),
            Declare("at", Pointer(StructType("point")), AddressOf(Identifier("point"))),
            Declare("first", Reference(Const(Scalar.INT32)), Member(Dereference(Identifier("at")), "x")),
            add,
            If(
                _binary(BinaryOperator.OR, wide, Unary(UnaryOperator.NOT, Boolean(value=False))),
                Block((Evaluate(_method("append", (Construct(STRING, (Integer(2), Cast(Scalar.CHAR, x))),))),)),
                Block((Return(Integer(-1)),)),
            ),
            Block((Evaluate(Call(Member(Identifier("part"), "clear"))),)),
            Assign(Member(Identifier("point"), "x"), _binary(BinaryOperator.ADD, Identifier("first"), 2)),
            If(
                _binary(BinaryOperator.EQUAL, _method("find", (Identifier("none"), Identifier("BEYOND"))), NPOS),
                Block((Assign(total, _binary(BinaryOperator.ADD, total, Dereference(AddressOf(SUM)))),)),
            ),
            Return(_binary(BinaryOperator.ADD, total, Cast(Scalar.INT32, Index(Identifier("copy"), Integer(0))))),
        )
    )


def everything() -> Module:
    """Return a module whose class and declarations together contain every kind of node."""
    table = ArrayData(np.array([1, 2, 3], np.int32))
    point = Struct(
        name="point",
        members=(
            StructMember(name="x", type=Scalar.INT32, doc="Across."),
            StructMember(name="next", type=Pointer(StructType("point"))),
        ),
        doc="A point.",
    )
    item = Class(
        name="Artifact",
        members=(
            Constructor(initialisers=(Initialiser(name="Artifact", arguments=(String("a.par"),)),), body=Block(())),
            Constructor(
                parameters=(PATH,),
                initialisers=(Initialiser(name="_text", arguments=(Identifier("path"),)), Initialiser(name="_sum")),
                body=Block((Assign(SUM, Integer(4)),)),
                doc="Read the parameters from a file.",
            ),
            Destructor(doc="Release everything."),
            Method(
                name="total",
                returns=Scalar.INT32,
                parameters=(Parameter(name="x", type=Scalar.INT32),),
                body=_total(),
                virtual=True,
                doc="Return the sum.",
            ),
            Method(
                name="text", returns=Reference(Const(STRING)), body=Block((Return(Identifier("_text")),)), constant=True
            ),
            Attribute(name="_text", type=STRING, visibility=Visibility.PROTECTED),
            Attribute(name="_sum", type=Scalar.INT32, doc="Unused."),
        ),
        doc="An artifact.",
    )
    run = Function(
        name="run",
        returns=Scalar.INT32,
        body=Block(
            (
                Declare("artifact", ClassType("Artifact"), Construct(ClassType("Artifact"), (String("x"),))),
                Return(Call(Member(Identifier("artifact"), "total"), (Integer(7, unsigned=True),))),
            )
        ),
        linkage=Linkage.EXTERNAL,
        doc="Run the artifact.",
    )
    identity = Variable(
        name="identity",
        type=ArrayType(Const(Scalar.UINT8), 2),
        value=ArrayData(np.array([1, 255], np.uint8)),
        linkage=Linkage.EXTERNAL,
        section=Section.IDENTITY,
        alignment=8,
    )
    return Module(
        name="artifact",
        doc="Everything.",
        interface_includes=_standard("string", "cstdint"),
        interface=(Enumeration(enumerators=(Enumerator(name="BEYOND", value=100),)), point, item, run, identity),
        implementation_includes=(*_standard("vector"), Include(path="ferrule/section.h")),
        implementation=(
            Variable(
                name="table", type=ArrayType(Scalar.INT32, 3), value=table, section=Section.WEIGHTS, doc="A table."
            ),
            item,
            run,
            identity,
        ),
    )


def _nodes(value: object) -> Iterator[object]:
    """Yield a part of a document and all parts in it."""
    yield value
    if isinstance(value, tuple):
        for each in value:
            yield from _nodes(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _nodes(getattr(value, field.name))


def _kinds() -> set[type]:
    return {kind for union in (Type, Expression, Statement, ClassMember, Declaration) for kind in get_args(union)}


def test_the_module_has_all_kinds_of_nodes() -> None:
    nodes = list(_nodes(everything()))
    assert _kinds() <= {type(node) for node in nodes}
    public = {getattr(dom, name) for name in dom.__all__}
    assert {each for each in public if is_dataclass(each)} <= {type(node) for node in nodes}
    for kind in (UnaryOperator, BinaryOperator, Visibility, Linkage):
        assert set(kind) <= {node for node in nodes if isinstance(node, Enum)}


def _compiled(folder: Path, files: dict[str, str], main: str) -> str:
    """Return what a program prints."""
    for name, text in {**files, "main.cpp": main}.items():
        (folder / name).write_text(text)
    sources = [str(folder / name) for name in ("main.cpp", *files) if name.endswith(".cpp")]
    warnings = ["-std=c++14", "-Wall", "-Wextra", "-Werror"]
    argv = [*require_cxx(), *warnings, f"-I{root() / 'include'}", *sources, "-o", str(folder / "program")]
    subprocess.run(argv, check=True)
    return subprocess.run([str(folder / "program")], check=True, capture_output=True, text=True).stdout


@pytest.mark.cc
def test_every_node_is_written_in_cpp(tmp_path: Path) -> None:
    main = '#include "artifact.h"\n#include <cstdio>\nint main()\n{\n    std::printf("%d %d", run(), identity[1]);\n}\n'
    assert _compiled(tmp_path, CPP.files(everything(), "A banner."), main) == "8 255"
