# SPDX-License-Identifier: Apache-2.0
"""Generates tvmgen_<model>.h and .c: a model with devices under the names of TVM's C device API.

The names per device are those of the merged RFC (tvm-rfcs 0031). The source has the context of each device, which a
handle bound in the RFC's first form gets with its driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ferrule.backends.firmware import SCALARS, device_declarations
from ferrule.codegen.executor import ExecutorBuilder, describe
from ferrule.codegen.lowered import LoweredGraph
from ferrule.codegen.names import LONGEST
from ferrule.codegen.place_code import Members
from ferrule.codegen.writer import Writer
from ferrule.graph.names import UniqueNames
from ferrule.rendering import Templates, Verbatim

_API = "tvm/runtime/device.h"
_TEMPLATES = Templates(Path(__file__).parent / "templates")
HOST = "host"
"""The member of the devices struct that stands for the core, unless a device has that name."""


def tvm_files(builder: ExecutorBuilder, banner: str) -> dict[str, str]:
    """Return the header and the source by file name; an empty mapping for a model without devices."""
    lowered, writer = builder.lowered, builder.lowered.plan.writer
    if not lowered.devices:
        return {}
    name, own = f"tvmgen_{lowered.symbol}", f"{builder.prefix}{writer.header_suffix}"
    values = {
        "banner": banner.splitlines(),
        "model": lowered.graph.name,
        "guard": f"{name}_h".upper(),
        "header": f"{name}{writer.header_suffix}",
        "prefix": builder.prefix,
        "shared": bool(builder.arena),
        "state": builder.has_state,
        "symbol": lowered.symbol,
        "headers": sorted({own, _API, *(use.driver.header for use in lowered.devices)}),
        "devices": list(_devices(lowered, writer)),
        "host": all(use.name != HOST for use in lowered.devices),
        "inputs": _members(builder.members["input"], writer),
        "outputs": _members(builder.members["output"], writer),
    }
    return {
        f"{name}{writer.header_suffix}": _TEMPLATES.render("tvmgen.h.j2", **values),
        f"{name}{writer.source_suffix}": _TEMPLATES.render("tvmgen.c.j2", **values),
    }


def camel_case(name: str) -> str:
    """Return a name in the form used within TVM's names: soft_npu and SoftNpu become SoftNpu, my-npu becomes MyNpu."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^0-9A-Za-z]+", name))


def _devices(lowered: LoweredGraph, writer: Writer) -> Iterator[dict[str, object]]:
    names = UniqueNames()
    for use in lowered.devices:
        camel = camel_case(use.device.name)
        yield {
            "use": use,
            "camel": names.take(camel if 0 < len(camel) <= LONGEST else camel_case(use.name)),
            "doc": f"{use.device.name}, of {use.backend}",
            "c": "" if use.driver.wire else Verbatim(writer.declarations(device_declarations(use.name, use.driver))),
        }


def _members(members: Members, writer: Writer) -> list[dict[str, str]]:
    return [
        {"name": name, "type": writer.declared(SCALARS[info.dtype]), "doc": describe(info)} for name, info in members
    ]
