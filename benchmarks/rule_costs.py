# SPDX-License-Identifier: Apache-2.0
"""What the rules of rounding cost in firmware: exact instructions of the keyword network (kws) on mps2-an386 by rule.

The columns `halves` are of the same layers with scales that are powers of two, which have no proof. Another table has
the share of factors for which one multiplication is proved equal to the rule for every sum, by the factor's size: of
channels, and in brackets of layers of 16 channels. Sums have magnitudes of up to 512 stored values.

    FERRULE_MODELS=... python benchmarks/rule_costs.py
    python benchmarks/rule_costs.py --shares
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from merged import merged
from proved_shares import share

import ferrule
from ferrule.graph import Graph, GraphEditor, LayerType, Quantization, Rounding, TensorInfo
from ferrule.network import Network

BOARD = "mps2-an386"
ORDER = (Rounding.TFLM, Rounding.SINGLE, Rounding.ONNX)
WEIGHTED = (LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D, LayerType.FULLY_CONNECTED)


def with_rule(graph: Graph, rule: Rounding, *, halves: bool) -> Network:
    """Return the network with another rule in its weighted layers, and all scales powers of two."""
    editor = GraphEditor(graph)
    if halves:
        for tensor in graph.tensors:
            editor.set_tensor(replace(tensor, info=_by_powers_of_two(tensor.info)))
    for layer in graph.layers:
        if layer.type in WEIGHTED:
            editor.replace_layer(replace(layer, rounding=rule))
    return merged([editor.finish()])


def _by_powers_of_two(info: TensorInfo) -> TensorInfo:
    old = info.quantization
    if old is None:
        return info
    new = Quantization(
        scales=tuple(2.0 ** round(math.log2(scale)) for scale in old.scales),
        zero_points=old.zero_points,
        axis=old.axis,
    )
    return replace(info, quantization=new)


def print_costs(model: Path) -> None:
    """Print the instructions of each layer, by rule."""
    graph = ferrule.load(model)
    columns = {}
    for halves in (False, True):
        for rule in ORDER:
            firmware = ferrule.compile(with_rule(graph, rule, halves=halves), board=BOARD, toolchain="zig")
            columns[f"{rule}{', halves' if halves else ''}"] = firmware.run(engine="unicorn").layers
    print("| layer | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for rows in zip(*columns.values(), strict=True):
        cells = [f"{row.count:,} `{row.kernel}`" for row in rows]
        print(f"| {rows[0].name} | " + " | ".join(cells) + " |")
    totals = [sum(row.count for row in rows) for rows in columns.values()]
    print("| all | " + " | ".join(f"{total:,}" for total in totals) + " |")


def print_shares() -> None:
    """Print the share of factors with a proof, by size, rule and zero point."""
    cases = [(rule, zero_point) for rule in ORDER[1:] for zero_point in (-128, 0)]
    print("| factor | " + " | ".join(f"{rule}, zero point {zero_point}" for rule, zero_point in cases) + " |")
    print("|---|" + "---:|" * len(cases))
    for exponent in range(-5, -13, -1):
        cells = [_share(exponent, rule, zero_point) for rule, zero_point in cases]
        print(f"| 2^{exponent - 1} to 2^{exponent} | " + " | ".join(cells) + " |", flush=True)


def _share(exponent: int, rule: Rounding, zero_point: int) -> str:
    """Return the share of channels and of layers as text."""
    channels, layers = share(exponent, rule, zero_point)
    return f"{100 * channels:.0f} % ({100 * layers:.0f} %)"


def main() -> None:
    """Print both tables, or only the shares."""
    print_shares()
    if "--shares" in sys.argv[1:]:
        return
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        sys.exit("set FERRULE_MODELS to the folder of the MLPerf Tiny models for the instructions")
    print()
    print_costs(Path(folder) / "kws_ref_model.tflite")


if __name__ == "__main__":
    main()
