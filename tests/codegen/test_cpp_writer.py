# SPDX-License-Identifier: Apache-2.0
"""The C++ writer spells every node of the document model as C++14; the C writer refuses those that C lacks."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from children import ran
from needs import require_cxx, require_program

from ferrule import dom
from ferrule.codegen.c_writer import C_WRITER
from ferrule.codegen.cpp_layout import Group, laid_out
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
    Constant,
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
    Not,
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
    Variable,
    Visibility,
    While,
)
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.resources import root

CPP = CppWriter()
STRING = ClassType("string", ("std",))
FLOATS = ClassType("vector", ("std",), (Scalar.FLOAT32,))
NPOS = QualifiedName(("std", "string"), "npos")
PATH = Parameter("path", Reference(Const(STRING)))
SUM = Identifier("_sum")


def _standard(*paths: str) -> tuple[Include, ...]:
    return tuple(Include(path, IncludeKind.STANDARD) for path in paths)


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
                _binary(BinaryOperator.OR, wide, Not(Boolean(value=False))),
                Block((Evaluate(_method("append", (Construct(STRING, (Integer(2), Cast(Scalar.CHAR, x))),))),)),
                Block((Return(Integer(-1)),)),
            ),
            Block((Evaluate(Call(Member(Identifier("part"), "clear"))),)),
            While(Boolean(value=False), Block((Return(Integer(-2)),))),
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
        "point",
        (
            StructMember("x", Scalar.INT32, doc="Across."),
            StructMember("next", Pointer(StructType("point"))),
        ),
        doc="A point.",
    )
    item = Class(
        name="Artifact",
        members=(
            Constructor(initialisers=(Initialiser("Artifact", (String("a.par"),)),), body=Block(())),
            Constructor(
                parameters=(PATH,),
                initialisers=(Initialiser("_text", (Identifier("path"),)), Initialiser("_sum")),
                body=Block((Assign(SUM, Integer(4)),)),
                doc="Read the parameters from a file.",
            ),
            Destructor(doc="Release everything."),
            Method(
                name="total",
                returns=Scalar.INT32,
                parameters=(Parameter("x", Scalar.INT32),),
                body=_total(),
                virtual=True,
                doc="Return the sum.",
            ),
            Method(
                name="text", returns=Reference(Const(STRING)), body=Block((Return(Identifier("_text")),)), constant=True
            ),
            Attribute("_text", STRING, visibility=Visibility.PROTECTED),
            Attribute("_sum", Scalar.INT32, doc="Unused."),
        ),
        doc="An artifact.",
    )
    run = Function(
        "run",
        Scalar.INT32,
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
        "identity",
        ArrayType(Const(Scalar.UINT8), 2),
        value=ArrayData(np.array([1, 255], np.uint8)),
        linkage=Linkage.EXTERNAL,
        section=Section.IDENTITY,
        alignment=8,
    )
    return Module(
        name="artifact",
        doc="Everything.",
        interface_includes=_standard("string", "cstdint"),
        interface=(
            *(Enumeration((Enumerator("BEYOND", 100),)), point, item, run, identity),
            Constant("STEP", Scalar.FLOAT32, value=Float(0.5), doc="A step."),
            Function(
                "half",
                Scalar.FLOAT32,
                body=Block((Return(Identifier("STEP")),)),
                linkage=Linkage.INLINE,
                doc="Return a half.",
            ),
        ),
        implementation_includes=(*_standard("vector"), Include("ferrule/section.h")),
        implementation=(
            Variable("table", ArrayType(Scalar.INT32, 3), value=table, section=Section.WEIGHTS, doc="A table."),
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
    for kind in (BinaryOperator, Visibility, Linkage):
        assert set(kind) <= {node for node in nodes if isinstance(node, Enum)}


def _compiled(folder: Path, files: dict[str, str], main: str) -> str:
    """Return what a program prints."""
    for name, text in {**files, "main.cpp": main}.items():
        (folder / name).write_text(text)
    sources = [str(folder / name) for name in ("main.cpp", *files) if name.endswith(".cpp")]
    warnings = ["-std=c++14", "-Wall", "-Wextra", "-Werror"]
    argv = [*require_cxx(), *warnings, f"-I{root() / 'include'}", *sources, "-o", str(folder / "program")]
    subprocess.run(argv, check=True)
    return ran([str(folder / "program")], check=True).stdout


WIDE = np.array([0, -1, 2**31, -(2**31), 2**32, 2**63 - 1, -(2**63)], np.int64)
FLOATS_READ = np.array([1.5, -0.0, 1e-45, 3.4028235e38, np.inf, -np.inf, np.nan], np.float32)


def literals() -> Module:
    """Return a module of numbers, of a text, and of objects that other constructors make."""
    source = Identifier("source")
    made = Construct(STRING, (Construct(STRING, (source,)),))
    rows: dict[str, tuple[Type, Expression]] = {
        "wide": (ArrayType(Const(Scalar.INT64)), ArrayData(WIDE)),
        "most": (Const(Scalar.UINT64), Integer(2**64 - 1, unsigned=True)),
        "floats": (ArrayType(Const(Scalar.FLOAT32)), ArrayData(FLOATS_READ)),
        "flags": (ArrayType(Const(Scalar.BOOL)), ArrayData(np.array([True, False]))),
        "source": (ArrayType(Const(Scalar.CHAR)), String('a"\\/é')),
        "text": (STRING, made),
        "bytes": (Pointer(Const(Scalar.UINT8)), Cast(Pointer(Const(Scalar.UINT8)), Identifier("floats"))),
        "missing": (Pointer(Const(Scalar.UINT8)), Cast(Pointer(Const(Scalar.UINT8)), Null())),
        "object": (Pointer(Scalar.VOID), Cast(Pointer(Scalar.VOID), AddressOf(Identifier("text")))),
        "back": (Pointer(STRING), Cast(Pointer(STRING), Identifier("object"))),
    }
    variables = tuple(
        Variable(name, type_, value=value, linkage=Linkage.EXTERNAL) for name, (type_, value) in rows.items()
    )
    return Module(
        name="literals",
        doc="",
        interface_includes=_standard("cstddef", "cstdint", "string"),
        interface=variables,
        implementation_includes=_standard("limits"),
        implementation=variables,
    )


_MAIN = """
#include "artifact.h"
#include "literals.h"

#include <cstdio>

int main()
{
    std::printf("%d %d\\n", static_cast<int>(run()), identity[1]);
    for (int i = 0; i < 7; ++i) {
        std::printf("%lld ", static_cast<long long>(wide[i]));
    }
    std::printf("%llu\\n", static_cast<unsigned long long>(most));
    for (int i = 0; i < 28; ++i) {
        std::printf("%02x", bytes[i]);
    }
    std::printf("\\n%d %d %d %s", flags[0], flags[1], missing == nullptr, back->c_str());
}
"""


@pytest.mark.cc
def test_every_node_is_written_in_cpp(tmp_path: Path) -> None:
    """What the program prints shows that the nodes keep their meaning."""
    files = CPP.files(everything(), "A banner.") | CPP.files(literals(), "A banner.")
    sums, numbers, raw, rest = _compiled(tmp_path, files, _MAIN).split("\n")
    assert sums == "8 255"
    assert list(map(int, numbers.split())) == [*WIDE.tolist(), 2**64 - 1]
    read = np.frombuffer(bytes.fromhex(raw), np.float32)
    assert np.isnan(read[-1])
    assert read[:-1].tobytes() == FLOATS_READ[:-1].tobytes()
    assert rest == '1 0 1 a"\\/é'


def test_c_refuses_the_module() -> None:
    for text in (C_WRITER.header, C_WRITER.source):
        with pytest.raises(UnsupportedError, match=r"^C has no classes, got Class 'Artifact'$"):
            text(everything(), "A banner.")
    without = replace(everything(), interface=(), implementation=(everything().implementation[2],))
    with pytest.raises(UnsupportedError, match=r"^C has no classes, got ClassType 'Artifact'$"):
        C_WRITER.source(without, "A banner.")


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (NPOS, "C has no namespaces, got QualifiedName 'npos'"),
        (Construct(FLOATS), "C has no classes, got ClassType 'vector'"),
        (Cast(Reference(Scalar.INT8), SUM), "C has no references, got Reference"),
        (Cast(Pointer(STRING), SUM), "C has no classes, got ClassType 'string'"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_c_refuses_what_only_cpp_has(node: Expression, message: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^{message}$"):
        C_WRITER.expression(node)


def test_cpp_refuses_named_fields() -> None:
    with pytest.raises(UnsupportedError, match=r"^C\+\+14 has no designated initialisers, got Field 'x'$"):
        CPP.expression(Aggregate((Field(Integer(1), "x"),)))


@pytest.mark.parametrize("bad", ["class", "new", "template", "int", "a b", "", "1a", "a::b", "é"])
def test_names_are_checked(bad: str) -> None:
    """Keywords of C++ are refused, too, wherever a name can stand."""
    method = Method(name=bad, returns=Scalar.VOID, body=Block(()))
    made = Constructor(initialisers=(Initialiser(bad),), body=Block(()))
    taken = Parameter(bad or "-", STRING)
    parameter = Method(name="f", returns=Scalar.VOID, parameters=(taken,), body=Block(()))
    classes = [Class(name=bad), *(Class(name="A", members=(each,)) for each in (method, made, parameter))]
    classes.append(Class(name="A", members=(Attribute(bad or "-", STRING),)))
    nodes = (Identifier(bad), QualifiedName((bad,), "x"), QualifiedName(("a",), bad), Member(SUM, bad))
    types = (ClassType(bad), ClassType("a", (bad,)), ClassType("a", (), (StructType(bad),)))
    for item in classes:
        with pytest.raises(FerruleError, match=r"is not an identifier of C\+\+|is a keyword of C\+\+"):
            CPP.source(Module(name="m", doc="", implementation=(item,)), "b")
    for node in (*nodes, *map(Construct, types)):
        with pytest.raises(FerruleError, match=r"is not an identifier of C\+\+|is a keyword of C\+\+"):
            CPP.expression(node)


def test_names_of_c_are_no_keywords_of_c() -> None:
    assert C_WRITER.expression(Identifier("class")) == "class"
    with pytest.raises(FerruleError, match="'int' is a keyword of C, not an identifier"):
        C_WRITER.expression(Identifier("int"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Construct(STRING), "std::string x;"),
        (Construct(STRING, (String("a"),)), 'std::string x("a");'),
        (Construct(STRING, (Construct(STRING),)), "std::string x((std::string()));"),
        (Construct(STRING, (Construct(STRING, (SUM,)),)), "std::string x((std::string(_sum)));"),
        (Construct(STRING, (Construct(STRING, (String("a"),)),)), 'std::string x(std::string("a"));'),
        (Construct(STRING, (Construct(STRING), Integer(1))), "std::string x(std::string(), 1);"),
        (Construct(FLOATS), "std::string x = std::vector<float>();"),
    ],
)
def test_objects_are_made_by_their_constructors(value: Expression, text: str) -> None:
    """Parentheses keep a declaration of an object from declaring a function."""
    assert CPP.statement(Declare("x", STRING, value), "") == text


def test_the_kinds_of_includes() -> None:
    includes = (
        Include("vector", IncludeKind.STANDARD),
        Include("arm_compute/core/Types.h", IncludeKind.LIBRARY),
        Include("own.h"),
        Include("another", IncludeKind.MODULE),
    )
    text = CPP.header(Module(name="m", doc="", interface_includes=includes), "b")
    groups = ('#include "another.h"\n#include "own.h"', "#include <arm_compute/core/Types.h>", "#include <vector>")
    assert "\n\n".join(groups) in text
    with pytest.raises(FerruleError, match="can't be written into an #include"):
        CPP.header(Module(name="m", doc="", interface_includes=(Include('a"b'),)), "b")


def test_a_class_of_the_implementation_is_declared_in_the_source() -> None:
    run = Method(name="run", returns=Scalar.VOID, body=Block(()), visibility=Visibility.PRIVATE)
    item = Class(name="Own", members=(run,))
    module = Module(name="m", doc="", implementation=(item,))
    assert "class" not in CPP.header(module, "b")
    assert CPP.declarations([Class(name="Empty")]) == "class Empty\n{\n};\n"
    assert "class Own\n{\n  private:\n    void run();\n};\n\nvoid Own::run()\n{\n}\n" in CPP.source(module, "b")


ACL = ("arm_compute",)


def _long() -> Module:
    """Return a module of statements that are longer than a line."""

    def acl(name: str, *arguments: Expression) -> Construct:
        return Construct(ClassType(name, ACL), arguments)

    def call(function: str, *arguments: Expression) -> Call:
        return Call(Member(Identifier(f"_functional_1_dense_{function}"), "configure"), arguments)

    numbers = tuple(Integer(number, unsigned=True) for number in range(6))
    floor = QualifiedName((*ACL, "DimensionRoundingType"), "FLOOR")
    stride = acl("PadStrideInfo", *numbers, floor)
    relu = acl("ActivationLayerInfo", QualifiedName((*ACL, "ActivationLayerInfo", "ActivationFunction"), "RELU"))
    tensors = tuple(AddressOf(Identifier(f"_{name}")) for name in ("image", "weights", "biases", "out"))
    scales = Aggregate(tuple(Field(Float(1.0 / number)) for number in range(1, 30)))
    info = ClassType("TensorInfo", ACL)
    statements: tuple[Statement, ...] = (
        Evaluate(call("layer", *tensors, stride, acl("WeightsInfo"), acl("Size2D", *numbers[:2]), relu)),
        Evaluate(call("layer", *tensors, *tensors, *tensors)),
        Evaluate(call("a_rather_long_name_of_a_layer", acl("TensorShape", *numbers), stride)),
        Evaluate(
            call("a_rather_long_name_of_a_layer_indeed_with_weights", acl("TensorInfo", acl("TensorShape"), stride))
        ),
        Assign(Member(Identifier("functional_1_dense_bias_add_fully_connected_info"), "activation_info"), relu),
        Declare("information", Const(info), Construct(info, (acl("TensorShape", *numbers), relu, floor))),
        Declare("quantization", FLOATS, Construct(FLOATS, (scales,))),
        Declare("short_list", FLOATS, Construct(FLOATS, (Aggregate(scales.fields[3:8]),))),
        Return(call("result", stride, relu)),
    )
    parameters = tuple(
        Parameter(f"parameter_{number}", Reference(Const(ClassType("CLTensor", ACL)))) for number in range(3)
    )
    long = "get_a_tensor_with_a_very_long_name_that_leaves_no_place_for_its_type"
    item = Class(
        name="Artifact",
        members=(
            Constructor(
                parameters=parameters,
                initialisers=tuple(Initialiser(f"_attribute_{n}", (numbers[n], floor)) for n in (1, 2)),
                body=Block(()),
                doc="A constructor with a description that is longer than one line, so that it has to be wrapped.",
            ),
            Constructor(initialisers=(Initialiser("Artifact", (SUM,)),), body=Block(())),
            Method(name="configure", returns=Scalar.VOID, body=Block(statements)),
            Method(name="accept", returns=Scalar.BOOL, parameters=parameters, body=Block(()), constant=True),
            Method(name=long, returns=Reference(ClassType("CLTensor", ACL)), body=Block(()), virtual=True),
            Attribute("_a", Scalar.INT8, doc="An attribute."),
            Attribute("_b", ClassType("vector", ("std",), (Pointer(Const(info)),))),
            Destructor(),
        ),
    )
    free = Function(f"f{long}", Pointer(Scalar.FLOAT32), parameters=parameters, body=Block(()))
    return Module(name="long", doc="", interface=(item,), implementation=(free, item))


def test_the_layout_is_that_of_clang_format(tmp_path: Path) -> None:
    program = require_program("clang-format", "pip install -e '.[dev]'")
    files = CPP.files(everything(), "A banner.") | CPP.files(literals(), "b") | CPP.files(_long(), "b")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        assert max(map(len, text.splitlines())) <= 100
    assert files["long.cpp"].count("clang-format off") == 1, "only around the list that it would align in columns"
    argv = [str(program), f"--style=file:{root() / '.clang-format'}", "--dry-run", "-Werror"]
    subprocess.run([*argv, *(str(tmp_path / name) for name in files)], check=True)


def _random_call(rng: random.Random, depth: int = 0) -> Group:
    words = ("1U", "&_a", "0.125f", "&_conv_layer_weights", "arm_compute::DataType::QASYMM8_SIGNED", "true")
    names = ("f", "_x.configure", "arm_compute::TensorShape", "arm_compute::ActivationLayerInfo")
    arguments = tuple(
        _random_call(rng, depth + 1) if depth < 3 and rng.random() < 0.3 else rng.choice(words)
        for _ in range(rng.randint(1, 6))
    )
    return Group(f"{rng.choice(names)}(", arguments, ")")


def test_random_calls_are_broken_like_by_clang_format() -> None:
    """Only among layouts of the same penalty may the choices differ."""
    program = require_program("clang-format", "pip install -e '.[dev]'")
    rng = random.Random(1)
    calls = [text for text in (laid_out("    ", _random_call(rng), ";") for _ in range(150)) if "\n" in text]
    between = "\n    int x;\n"
    argv = [str(program), f"--style=file:{root() / '.clang-format'}", "--assume-filename=x.cpp"]
    given = f"void f()\n{{\n{between.join(calls)}\n}}\n"
    done = ran(argv, stdin=given, check=True)
    expected = done.stdout.removeprefix("void f()\n{\n").removesuffix("\n}\n").split(between)
    assert len(calls) > 60
    assert sum(map(str.__eq__, calls, expected)) >= 0.98 * len(calls)
