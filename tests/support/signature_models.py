# SPDX-License-Identifier: Apache-2.0
"""Files with several signatures."""

from __future__ import annotations

from flatbuffer_tree import Table, one_operator_model, operator, table, tensor


def two(signatures: dict[str, int]) -> Table:
    """Return a model of two subgraphs, RELU and twice RELU, with signatures by name and number of their subgraph."""
    model = one_operator_model("RELU", [tensor("x", (1, 4)), tensor("y", (1, 4))], [0], [1])
    tensors = [tensor(name, (1, 4)) for name in "xyz"]
    other = one_operator_model("RELU", tensors, [0], [1])["Subgraphs"][0]
    other["Name"], other["Operators"] = "other", [operator([0], [1]), operator([1], [2])]
    model["Subgraphs"].append(other)
    model["SignatureDefs"] = [
        table("SignatureDef", SignatureKey=key, SubgraphIndex=index) for key, index in signatures.items()
    ]
    return model
