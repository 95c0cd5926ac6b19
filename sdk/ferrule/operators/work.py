# SPDX-License-Identifier: Apache-2.0
"""What a run of a graph computes and holds, from its shapes alone, so that too much is refused before it begins."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule._frozen import frozen
from ferrule.budget import Resource, Tally, afford
from ferrule.graph import Graph, Layer
from ferrule.operators.interpreter import last_readers
from ferrule.operators.operator import Operands

_WORKING_BYTES = 8
"""Of each element that a kernel works on: its sums have 64 bits, or are float64."""


@frozen
class Work:
    """What a layer, or a graph that a layer calls, computes."""

    elements: int
    """Read and written."""
    multiplications: int
    working_bytes: int
    """Held by the kernel beside the tensors, at most."""


def work_of(graph: Graph, layer: Layer) -> Work:
    """Return what one run of a layer computes; of a loop, one iteration.

    Layers of a backend's own, which have no operator, are counted by their tensors.
    """
    from ferrule.operators.table import OPERATORS  # which has the rows of loops, whose kernels count their work

    operands, operator = Operands.of(graph, layer), OPERATORS.get(layer.type)
    count_reads = None if operator is None else operator.reads
    read = sum(info.elements for info, name in zip(operands.inputs, layer.inputs, strict=True) if info and name)
    made = sum(info.elements for info in operands.outputs)
    multiplications = 0 if operator is None else operator.macs(layer.descriptor, operands)
    # a matrix product reads the data of each row of the output once, which a convolution gathers before
    gathered = multiplications // operands.output.shape[-1] if multiplications and operands.output.shape else 0
    constants = sum(graph.info(name).elements for name in layer.present_inputs if graph.tensor(name).data is not None)
    elements = read + made + max(gathered, count_reads(layer.descriptor, operands) if count_reads else 0)
    working = _WORKING_BYTES * (read - constants + made + gathered)
    inside = work_of_all(layer.descriptor.graphs.values())
    return Work(
        elements=elements + inside.elements,
        multiplications=multiplications,  # which has those of the graphs
        working_bytes=working + inside.working_bytes,
    )


def work_of_all(graphs: Iterable[Graph]) -> Work:
    """Return what one run of each of some graphs computes, with the bytes of all their tensors."""
    elements = multiplications = working = 0
    for graph in graphs:
        works = [work_of(graph, layer) for layer in graph.layers]
        elements += sum(each.elements for each in works)
        multiplications += sum(each.multiplications for each in works)
        working += max((each.working_bytes for each in works), default=0)
        working += sum(info.size_bytes for layer in graph.layers for info in graph.output_infos(layer))
    return Work(elements=elements, multiplications=multiplications, working_bytes=working)


def check_work(graph: Graph) -> None:
    """Raise BudgetError, which names a layer, if a run of a graph on one sample is beyond the present budget.

    Of a loop, one iteration is counted here, and the others by `operators.control_flow` as they begin.
    """
    tally, last = Tally(), last_readers(graph)
    live = {info.name: info.size_bytes for info in graph.sources}
    live_bytes = sum(live.values())
    for index, layer in enumerate(graph.layers):
        work, where = work_of(graph, layer), f"layer '{layer.name}' {layer.type}"
        made = {info.name: info.size_bytes for info in graph.output_infos(layer)}
        live |= made
        live_bytes += sum(made.values())
        tally.spend(Resource.MULTIPLICATIONS, work.multiplications, f"a run up to {where}")
        tally.spend(Resource.ELEMENTS, work.elements, f"a run up to {where}")
        afford(Resource.BYTES, live_bytes + work.working_bytes, where)
        for name in {*layer.present_inputs, *layer.outputs}:
            if last[name] == index:
                live_bytes -= live.pop(name, 0)
