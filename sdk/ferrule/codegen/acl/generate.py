# SPDX-License-Identifier: Apache-2.0
"""Generates a C++ class over the Arm Compute Library from a network (S4).

The network becomes a module of the document model with one class; a writer prints its header and its source.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import msgspec

from ferrule._frozen import frozen
from ferrule._version import VERSION
from ferrule.codegen.acl.builder import AclTensor, ClassBuilder
from ferrule.codegen.acl.layouts import dimensions
from ferrule.codegen.acl.names import check_class_name, member_names
from ferrule.codegen.acl.parameters import ParameterRecord
from ferrule.codegen.acl.rows import AclOptions, LayerParts
from ferrule.codegen.acl.support import VERSIONS, LayerUse, supported
from ferrule.codegen.acl.table import ROWS
from ferrule.codegen.acl.targets import AclTarget, acl_target
from ferrule.codegen.cpp_writer import CppWriter
from ferrule.codegen.digest import digest
from ferrule.codegen.writer import Writer
from ferrule.documents import json_text
from ferrule.dom import (
    Attribute,
    Block,
    Call,
    Class,
    ClassMember,
    ClassType,
    Comment,
    Const,
    Constructor,
    Destructor,
    Evaluate,
    Identifier,
    IncludeKind,
    Initialiser,
    Method,
    Module,
    Parameter,
    Pointer,
    QualifiedName,
    Reference,
    Return,
    Scalar,
    Statement,
    String,
    Visibility,
    includes,
    unsigned,
)
from ferrule.dom import Member as MemberAccess
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import DataType, Graph, refuse_states
from ferrule.interface import either
from ferrule.rendering import one_line

_LISTED = 20
FORMAT = 1


@frozen
class QuantizationRecord:
    """How a tensor's stored values represent real numbers."""

    scale: float
    zero_point: int


@frozen
class TensorRecord:
    """A tensor of the network in the class."""

    name: str
    """The name in the network."""
    getter: str
    type: str
    """The element type in the class."""
    shape: tuple[int, ...]
    """Extents in the network's order, outermost first."""
    dimensions: tuple[int, ...]
    """Extents in the library's order, innermost first."""
    quantization: QuantizationRecord | None
    role: str
    """"input", "output" or "intermediate"."""
    layer: str | None
    """The layer that writes it."""


@frozen
class ArtifactRecord:
    """The contents of the file that describes an artifact, `<name>.par.json`."""

    format: int
    artifact: str
    target: str
    acl: str
    """The oldest version of the library that it is for."""
    float16: bool
    ferrule: str
    network: str
    """The SHA-256 of the network."""
    bytes: int
    """The size of the parameter file."""
    crc32: int
    parameters: tuple[ParameterRecord, ...]
    tensors: tuple[TensorRecord, ...]


@frozen
class AclArtifact:
    """A generated class: its files, and the description of both."""

    name: str
    target: AclTarget
    graph: Graph
    record: ArtifactRecord
    files: Mapping[str, bytes] = field(repr=False)
    """`<name>.h`, `<name>.cpp`, `<name>.par` and `<name>.par.json`."""


def generate_class(
    graph: Graph,
    *,
    target: str,
    name: str = "AclArtifact",
    options: AclOptions | None = None,
    writer: Writer | None = None,
) -> AclArtifact:
    """Return the class of a network; the same network always produces the same bytes.

    Args:
        graph: the network.
        target: "arm-gpu-c++" or "arm-cpu-c++".
        name: of the class and the files.
        options: the version of the library, and whether to compute in float16.
        writer: prints the document, by default as C++14.

    Raises:
        FerruleError: there is no such target or version, or the class cannot have this name.
        UnsupportedError: layers cannot be part of the class; the message lists each with its reason.
    """
    check_class_name(name)
    refuse_states(graph.name, graph.states, "a class over the Arm Compute Library")
    side, chosen = acl_target(target), _checked_options(options)
    _check(graph, chosen)
    builder = ClassBuilder(target=side, graph=graph, float16=chosen.float16)
    _add_layers(builder, graph, chosen)
    parameters = builder.parameters.contents()
    checksum = zlib.crc32(parameters)  # the CRC-32 of ISO 3309, which the class computes of the file
    printer = writer or CppWriter()
    class_ = _class(builder, graph, name, size=len(parameters), checksum=checksum)
    module = Module(
        name=name,
        doc=_doc(graph, builder),
        interface_includes=(
            *includes("arm_compute/core/Types.h", *side.headers, kind=IncludeKind.LIBRARY),
            *includes("fstream", "string", kind=IncludeKind.STANDARD),
        ),
        interface=(class_,),
        implementation_includes=(
            *includes("acl_parameters.h"),
            *includes("cstdint", "limits", "vector", kind=IncludeKind.STANDARD),
        ),
        implementation=(class_,),
    )
    record = ArtifactRecord(
        format=FORMAT,
        artifact=name,
        target=side.name,
        acl=chosen.version,
        float16=chosen.float16,
        ferrule=VERSION,
        network=digest(graph),
        bytes=len(parameters),
        crc32=checksum,
        parameters=tuple(builder.parameters.records),
        tensors=tuple(_tensor_records(builder, graph)),
    )
    banner = (
        "SPDX-License-Identifier: Apache-2.0\n"
        f"Generated by ferrule {VERSION} from '{one_line(graph.name)}' ({record.network[:16]}). Do not edit."
    )
    files = {
        **{file: text.encode() for file, text in printer.files(module, banner).items()},
        f"{name}.par": parameters,
        f"{name}.par.json": f"{json_text(record)}\n".encode(),
    }
    return AclArtifact(name=name, target=side, graph=graph, record=record, files=files)


def explain_class(graph: Graph, *, target: str, options: AclOptions | None = None) -> tuple[LayerUse, ...]:
    """Return for each layer the functions of the library that compute it, or the reason why there are none.

    Raises:
        FerruleError: there is no such target or version.
    """
    side, chosen = acl_target(target), _checked_options(options)
    builder = ClassBuilder(target=side, graph=graph, float16=chosen.float16)
    members = _members(builder, graph)
    for name, member in members.items():
        builder.tensors[name] = AclTensor(member=member, shape=graph.info(name).shape, dtype=graph.info(name).dtype)
    uses = []
    for layer in graph.layers:
        builder.functions = []
        reason = supported(graph, layer, chosen)
        if not reason:
            ROWS[layer.type].add(LayerParts(layer=layer, graph=graph, options=chosen, builder=builder))
        functions = tuple(builder.functions)
        uses.append(LayerUse(layer=layer.name, type=layer.type.value, functions=functions, reason=reason))
    return tuple(uses)


def _checked_options(options: AclOptions | None) -> AclOptions:
    chosen = options or AclOptions()
    if chosen.version not in VERSIONS:
        raise FerruleError(
            f"the version of the Arm Compute Library is '{chosen.version}', expected one of {', '.join(VERSIONS)}"
        )
    return chosen


def _members(builder: ClassBuilder, graph: Graph) -> Mapping[str, str]:
    """Return the attributes of all inputs and results, by name of the tensor."""
    named = [info.name for info in graph.inputs] + [name for layer in graph.layers for name in layer.outputs]
    return member_names(named, builder.names)


def output_problems(graph: Graph) -> list[str]:
    """Return why outputs of a network cannot be outputs of a class."""
    inputs = {info.name for info in graph.inputs}
    kinds = {
        info.name: "an input" if info.name in inputs else "a constant"
        for info in graph.outputs
        if info.name in inputs or graph.tensor(info.name).is_constant
    }
    return [f"output '{name}': it is {kind}, and no layer writes it" for name, kind in kinds.items()]


def _check(graph: Graph, options: AclOptions) -> None:
    refused = {layer: reason for layer in graph.layers if (reason := supported(graph, layer, options))}
    reasons = [f"layer '{layer.name}' ({layer.type}): {reason}" for layer, reason in refused.items()]
    reasons += output_problems(graph)
    if not reasons:
        return
    newest = replace(options, version=VERSIONS[-1])
    newer = any(not supported(graph, layer, newest) for layer in refused)
    shown = "\n".join(f"  {reason}" for reason in reasons[:_LISTED])
    more = f"\n  and {len(reasons) - _LISTED} more" if len(reasons) > _LISTED else ""
    raise UnsupportedError(
        f"'{graph.name}' cannot become a class over the Arm Compute Library:\n{shown}{more}",
        hint=either("`ferrule inspect MODEL --target TARGET`", "ferrule.inspect(network, target=TARGET)")
        + " shows every layer"
        + (f"; version {VERSIONS[-1]} ({either('--acl-version', 'AclOptions')}) takes more of them" if newer else ""),
    )


def _add_layers(builder: ClassBuilder, graph: Graph, options: AclOptions) -> None:
    members = _members(builder, graph)
    for info in graph.inputs:
        builder.named(info.name, members[info.name])
    for layer in graph.layers:
        builder.remark(f"{layer.name}: {layer.type}")
        for output in layer.outputs:
            builder.named(output, members[output])
        ROWS[layer.type].add(LayerParts(layer=layer, graph=graph, options=options, builder=builder))
        for output in layer.outputs:
            arguments = (String(layer.name), String(output), Identifier(members[output]))
            builder.inference.append(Evaluate(Call(Identifier("afterLayer"), arguments)))


def _tensor_records(builder: ClassBuilder, graph: Graph) -> Sequence[TensorRecord]:
    writers = {name: layer.name for layer in graph.layers for name in layer.outputs}
    inputs, outputs = ({info.name for info in infos} for infos in (graph.inputs, graph.outputs))
    records = []
    for name, tensor in builder.tensors.items():
        quantization = tensor.quantization if tensor.dtype is DataType.INT8 else None
        records.append(
            TensorRecord(
                name=name,
                getter=_getter(tensor),
                type=tensor.dtype.value,
                shape=tensor.shape,
                dimensions=dimensions(tensor.shape),
                quantization=None
                if quantization is None
                else QuantizationRecord(scale=quantization.scale, zero_point=quantization.zero_point),
                role="output" if name in outputs else "input" if name in inputs else "intermediate",
                layer=writers.get(name),
            )
        )
    return records


def _getter(tensor: AclTensor) -> str:
    return f"get_{tensor.member[1:]}"


def _doc(graph: Graph, builder: ClassBuilder) -> str:
    renamed = [(name, _getter(tensor)) for name, tensor in builder.tensors.items() if f"get_{name}" != _getter(tensor)]
    text = f"The network '{graph.name}' on {builder.target.title}, with the Arm Compute Library."
    if not renamed:
        return text
    return f"{text} Tensors with other names here: {'; '.join(f'{name}: {getter}()' for name, getter in renamed)}."


def _class(builder: ClassBuilder, graph: Graph, name: str, *, size: int, checksum: int) -> Class:
    tensor = Reference(builder.target.tensor)
    text = Reference(Const(ClassType("string", ("std",))))
    members: list[ClassMember] = [
        Constructor(
            initialisers=(Initialiser(name, (String(f"{name}.par"),)),),
            body=Block(()),
            doc=f"Reads the parameters from {name}.par in the current folder.",
        ),
        Constructor(
            parameters=(Parameter("path", text),),
            body=Block(tuple(_constructor(builder, size=size, checksum=checksum))),
            doc=_CONSTRUCTOR,
        ),
        Destructor(),
        Method(
            name="Inference",
            returns=Scalar.VOID,
            body=Block((*builder.inference, *builder.target.finish())),
            doc="Computes the outputs from the inputs, and waits until they are there."
            if builder.target.mapped
            else "Computes the outputs from the inputs.",
        ),
    ]
    for network_name, each in builder.tensors.items():
        members.append(_access(_getter(each), tensor, each, _tensor_doc(network_name, each)))
    for getter, infos in (("getInput", graph.inputs), ("getOutput", graph.outputs)):
        if len(infos) == 1:
            members.append(_access(getter, tensor, builder.tensors[infos[0].name], ""))
    string = Pointer(Const(Scalar.CHAR))
    members.append(
        Method(
            name="afterLayer",
            returns=Scalar.VOID,
            parameters=(
                Parameter("", string),
                Parameter("", string),
                Parameter("", tensor),
            ),
            body=Block(()),
            visibility=Visibility.PROTECTED,
            virtual=True,
            doc="Called after each layer for each tensor that it wrote: layer, name of the tensor, tensor. "
            "Does nothing; a derived class may look at the tensor"
            + (", after a sync() of the scheduler and a map()." if builder.target.mapped else "."),
        )
    )
    members.append(Attribute("_parIn", ClassType("ifstream", ("std",))))
    return Class(name=name, members=(*members, *builder.attributes), doc=f"The network '{graph.name}'.")


_CONSTRUCTOR = (
    "Configures all layers, then allocates all tensors, then reads the parameters.\n"
    "Throws std::runtime_error if the parameter file is missing, damaged or not that of this class."
)


def _tensor_doc(name: str, tensor: AclTensor) -> str:
    return f"'{name}': {tensor.dtype} {list(tensor.shape)}, in the library {list(dimensions(tensor.shape))}."


def _access(name: str, tensor: Reference, value: AclTensor, doc: str) -> Method:
    return Method(name=name, returns=tensor, body=Block((Return(Identifier(value.member)),)), doc=doc)


def _constructor(builder: ClassBuilder, *, size: int, checksum: int) -> Sequence[Statement]:
    stream = Identifier("_parIn")
    arguments = (stream, Identifier("path"), unsigned(size), unsigned(checksum))
    return (
        Evaluate(Call(QualifiedName(("acl_parameters",), "open"), arguments)),
        *builder.configuration,
        Comment("Memory comes after all configurations, which decide the padding of the tensors."),
        *builder.allocation,
        *((Comment("The parameters, in the order of the file."), *builder.loading) if builder.loading else ()),
        Evaluate(Call(MemberAccess(stream, "close"))),
    )


def read_record(text: bytes) -> ArtifactRecord:
    """Return the description of an artifact.

    Raises:
        FerruleError: the text is not such a description, or one of another format.
    """
    try:
        record = msgspec.json.decode(text, type=ArtifactRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FerruleError(f"the description of the artifact is not valid: {error}") from error
    if record.format != FORMAT:
        raise FerruleError(f"the description of the artifact has format {record.format}, expected {FORMAT}")
    return record
