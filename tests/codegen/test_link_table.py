# SPDX-License-Identifier: Apache-2.0
"""The table by which the link describes a model's tensors."""

from __future__ import annotations

import re

import pytest
import small_networks

from ferrule.firmware import Job, emit
from ferrule.network import Network


@pytest.mark.parametrize(
    ("network", "shapes"),
    [(small_networks.dense(), [("{1, 6}", 2), ("{1, 4}", 2)]), (small_networks.scalar(), [("", 0)] * 3)],
    ids=lambda value: value.name if isinstance(value, Network) else "",
)
def test_each_tensor_has_its_name_shape_size_and_type(network: Network, shapes: list[tuple[str, int]]) -> None:
    artifact = emit(network, Job())
    table = artifact.files[f"ferrule_{network.name}_link.c"]
    infos = [*network.inputs, *network.outputs]
    found = re.findall(
        r'\.name = "(\w+)",\s+\.data = &(\w+)\[(\w+)\],\s+\.bytes = (\d+),'
        r"(?:\s+\.shape = (\{[^}]+\}),)?\s+\.rank = (\d+),\s+\.type = (\w+)\}",
        table,
    )
    kinds = [*("INPUT" for _ in network.inputs), *("OUTPUT" for _ in network.outputs)]
    prefix = f"ferrule_{network.name}"
    assert found == [
        (
            info.name,
            f"{prefix}_default_sram",
            f"{prefix}_{kind}_{info.name}_OFFSET".upper(),
            str(info.size_bytes),
            shape,
            str(rank),
            "FERRULE_LINK_INT8",
        )
        for info, kind, (shape, rank) in zip(infos, kinds, shapes, strict=True)
    ]
