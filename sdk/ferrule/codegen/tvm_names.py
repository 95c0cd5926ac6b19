# SPDX-License-Identifier: Apache-2.0
"""Generates tvmgen_<model>.h: a model with devices under the names of TVM's C device API, as merged (tvm-rfcs 0031)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ferrule.backends.firmware import SCALARS
from ferrule.codegen.executor import ExecutorBuilder, describe
from ferrule.codegen.lowered import LoweredGraph
from ferrule.codegen.run_code import Members
from ferrule.codegen.writer import Writer
from ferrule.graph.names import UniqueNames
from ferrule.rendering import Templates

_API = "tvm/runtime/device.h"
_TEMPLATES = Templates(Path(__file__).parent / "templates")
HOST = "host"
"""The member of the devices struct that stands for the core, unless a device has that name."""


def tvm_header(builder: ExecutorBuilder, lowered: LoweredGraph, banner: str, writer: Writer) -> dict[str, str]:
    """Return the header's text by its file name; an empty mapping for a model without devices."""
    if not lowered.devices:
        return {}
    name, own = f"tvmgen_{lowered.symbol}", f"{builder.prefix}{writer.header_suffix}"
    text = _TEMPLATES.render(
        "tvmgen.h.j2",
        banner=banner.splitlines(),
        model=lowered.graph.name,
        guard=f"{name}_h".upper(),
        prefix=builder.prefix,
        shared=builder.shared,
        symbol=lowered.symbol,
        headers=sorted({own, _API, *(use.driver.header for use in lowered.devices)}),
        devices=list(_devices(lowered)),
        host=all(use.name != HOST for use in lowered.devices),
        inputs=_members(builder.input_members, writer),
        outputs=_members(builder.output_members, writer),
    )
    return {f"{name}{writer.header_suffix}": text}


def camel_case(name: str) -> str:
    """Return an identifier in the form used within TVM's names: soft_npu becomes SoftNpu."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def _devices(lowered: LoweredGraph) -> Iterator[dict[str, str]]:
    names = UniqueNames()
    for use in lowered.devices:
        camel = names.take(camel_case(use.name))
        doc = f"{use.device.name}, of {use.backend}"
        yield {"name": use.name, "camel": camel, "driver": use.driver.driver, "doc": doc}


def _members(members: Members, writer: Writer) -> list[dict[str, str]]:
    return [
        {"name": name, "type": writer.declared(SCALARS[info.dtype]), "doc": describe(info)} for name, info in members
    ]
