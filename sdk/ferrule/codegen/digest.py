# SPDX-License-Identifier: Apache-2.0
"""A hash of everything in a graph that the generated code depends on."""

from __future__ import annotations

import hashlib

from ferrule.graph import Graph


def digest(graph: Graph) -> str:
    """Return the SHA-256 of a graph as hexadecimal digits; equal graphs have equal digests on every machine."""
    sha = hashlib.sha256()
    sha.update(repr((graph.name, [i.name for i in graph.inputs], [o.name for o in graph.outputs])).encode())
    for tensor in graph.tensors:
        sha.update(repr(tensor.info).encode())
        if tensor.data is not None:
            sha.update(tensor.data.tobytes())
    for layer in graph.layers:
        sha.update(repr(layer).encode())
    return sha.hexdigest()
