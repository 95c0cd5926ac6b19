# SPDX-License-Identifier: Apache-2.0
"""Prints the description of a network on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ferrule.firmware.fitting import BoardFit
from ferrule.graph import Rounding
from ferrule.interface import name_of, spelled
from ferrule.report.estimates import print_estimates
from ferrule.report.inspection import (
    ClassPart,
    CrossingPart,
    DeviceCrossingPart,
    DivisionPart,
    FinalPart,
    Inspection,
    KernelPart,
    LayerInspection,
    LayerKernelsPart,
    ScheduledPart,
    TakerPart,
    TensorPart,
)
from ferrule.report.tables import print_table

if TYPE_CHECKING:
    from rich.console import Console

_PLACES = {"host": "on the host", "firmware": "in firmware"}


def print_inspection(inspection: Inspection, console: Console) -> None:
    """Print inputs and outputs, the table of layers, and the totals."""
    from rich.markup import escape

    if len(inspection.signatures) > 1:
        own, *others = inspection.signatures
        text = spelled(f"signature '{own}'; the others: {', '.join(others)} ({name_of('signature')})")
        console.print(escape(text), highlight=False)
    for kind, names in (("input", inspection.inputs), ("output", inspection.outputs)):
        for name in names:
            console.print(escape(f"{kind} {_describe(inspection.tensor(name))}"), highlight=False)
    _print_layers(inspection, console)
    console.print(
        f"{len(inspection.layers)} layers, {inspection.macs:,} MACs, {inspection.constant_bytes:,} B of constants",
        highlight=False,
    )
    _print_arena(inspection, console)
    if inspection.division is not None:
        _print_division(inspection, inspection.division, console)
        print_estimates(inspection.estimates, console)
    if inspection.schedule is not None:
        _print_schedule(inspection.schedule, console)
    if inspection.crossings:
        _print_device_crossings(inspection.crossings, console)
    if inspection.kernels is not None:
        _print_kernels(inspection.kernels, console)
    if inspection.artifact is not None:
        _print_class(inspection, inspection.artifact, console)
    if inspection.boards is not None:
        _print_boards(inspection.boards, console)


def _print_arena(inspection: Inspection, console: Console) -> None:
    """Print the arena of the firmware, or why there is none, and then its bounds."""
    from rich.markup import escape

    arena, problem = inspection.arena, escape(inspection.arena_problem)
    if arena is None:
        console.print(f"arena: none, since there is no firmware: {problem or 'it was not generated'}", highlight=False)
    else:
        console.print(
            f"arena: {arena.size_bytes:,} B on {escape(arena.board)} (goal {arena.goal}), {arena.certificate}",
            highlight=False,
        )
        console.print(f"  {arena.bounds}", highlight=False)
    console.print(
        f"  the network's own activations, each layer in whole, without overlap: {inspection.whole_layers_bytes:,} B",
        highlight=False,
    )
    if arena is not None and problem:
        console.print(f"  [bold red]too large[/]: {problem}", highlight=False)
    if arena is not None and arena.state_bytes:
        console.print(f"state: {arena.state_bytes:,} B that live from one run to the next", highlight=False)


def _print_boards(boards: Sequence[BoardFit], console: Console) -> None:
    """Print what the firmware's plan needs of each board's memories, and by how much they are too small."""
    from rich.markup import escape

    rows = [
        (
            escape(fit.board),
            "" if fit.arena is None else f"{fit.arena.size_bytes:,} B, {fit.arena.certificate}",
            escape(
                "\n".join(f"{each.need_bytes:,} B of {each.have_bytes:,} B in {each.memory}" for each in fit.memories)
            ),
            escape(
                "\n".join(" + ".join(f"{part} {size:,}" for part, size in each.parts.items()) for each in fit.memories)
            ),
            "fits" if fit.fits else f"[bold red]{escape(fit.missing)}[/]",
        )
        for fit in boards
    ]
    print_table(
        console,
        ("board", "arena", "plan", "bytes of", "verdict"),
        rows,
        whole=("board", "plan"),
        spare=("bytes of",),
        title="the firmware's plan, without its code",
    )


def _print_class(inspection: Inspection, part: ClassPart, console: Console) -> None:
    """Print the functions of the Arm Compute Library for each layer, or why there are none."""
    from rich.markup import escape

    types = {layer.name: layer.type for layer in inspection.layers}
    rows = [
        (str(index), escape(layer.layer), types[layer.layer], escape("\n".join(layer.functions)), escape(layer.reason))
        for index, layer in enumerate(part.layers)
    ]
    half = ", in float16" if part.float16 else ""
    print_table(
        console,
        ("#", "layer", "type", "functions", "not possible"),
        rows,
        whole=("layer", "functions"),
        title=f"{part.target}: Arm Compute Library {part.acl_version} or later{half}",
    )
    refused = sum(bool(layer.reason) for layer in part.layers)
    console.print(f"{len(part.layers) - refused} of {len(part.layers)} layers are possible", highlight=False)
    for problem in part.outputs:
        console.print(f"not possible: {problem}", highlight=False, markup=False)


def _print_division(inspection: Inspection, division: DivisionPart, console: Console) -> None:
    """Print which backend supports each layer, and why the others do not."""
    from rich.markup import escape

    types = {layer.name: layer.type for layer in inspection.layers}
    rows = [
        (
            str(index),
            escape(taker.layer),
            types[taker.layer],
            _taker(taker),
            escape("\n".join(f"{refusal.backend}: {refusal.reason}" for refusal in taker.refusals)),
        )
        for index, taker in enumerate(division.layers)
    ]
    print_table(
        console,
        ("#", "layer", "type", "taken by", "refused by"),
        rows,
        whole=("layer", "taken by"),
        title="backends: the network as given",
    )
    for backend in division.backends:
        faces = [name for name, has in (("host", backend.host), ("firmware", backend.firmware)) if has]
        count = sum(taker.backend == backend.id for taker in division.layers)
        console.print(f"{backend.id}: {count} layers, runs on {' and '.join(faces) or 'nothing'}", highlight=False)
    for final in division.finals:
        _print_final(final, console)


def _print_final(final: FinalPart, console: Console) -> None:
    """Print the assignment of layers after the backends have rewritten the network."""
    from rich.markup import escape

    where = _PLACES[final.face]
    if final.problem:
        console.print(f"[bold red]it cannot run {where}[/]: {escape(final.problem)}", highlight=False)
        return
    rows = [
        (
            str(index),
            escape(layer.layer),
            escape(f"{layer.type} ({layer.label})" if layer.label else layer.type),
            escape(_runner(layer.backend, layer.device)),
            escape(", ".join(layer.replaces)),
        )
        for index, layer in enumerate(final.layers)
    ]
    print_table(
        console,
        ("#", "layer", "type", "run by", "in place of"),
        rows,
        whole=("layer", "run by"),
        title=f"{where}: what finally runs",
    )
    if final.crossings:
        _print_crossings(final.crossings, console)
    if final.dma_bufs:
        console.print(escape(f"dma-bufs of this machine: {final.dma_bufs}"), highlight=False)
    if final.gone:
        console.print(escape(f"fused, folded or deleted: {', '.join(final.gone)}"), highlight=False)
    for message in final.messages:
        console.print(f"[yellow]note[/]: {escape(message)}", highlight=False)


def _print_crossings(crossings: Sequence[CrossingPart], console: Console) -> None:
    """Print how each tensor that passes from one backend to another is transferred."""
    from rich.markup import escape

    rows = [
        (
            escape(crossing.tensor),
            escape(f"{crossing.source or 'the application'} -> {crossing.target}"),
            crossing.strategy,
            f"{crossing.size_bytes:,}",
            f"{crossing.alignment_bytes:,}",
            escape(crossing.reason),
        )
        for crossing in crossings
    ]
    print_table(
        console,
        ("tensor", "from and to", "strategy", "bytes", "alignment", "reason"),
        rows,
        right=("bytes", "alignment"),
        whole=("tensor", "strategy"),
        title="on the host: what passes from one backend to another",
    )


def _print_schedule(schedule: Sequence[ScheduledPart], console: Console) -> None:
    """Print the operators in the order in which they run, with their device calls."""
    from rich.markup import escape

    overlaps = any(part.beside for part in schedule)
    rows = [
        (
            str(part.index),
            escape(part.layer),
            escape(_runner(part.backend, part.device)),
            escape(", ".join(part.calls)),
            *((escape(", ".join(part.beside)),) if overlaps else ()),
        )
        for part in schedule
    ]
    print_table(
        console,
        ("#", "layer", "run by", "calls", *(("beside",) if overlaps else ())),
        rows,
        whole=("layer", "run by"),
        title="the firmware's operators in order, and the calls of devices",
    )
    for part in schedule:
        for copy in part.copies:
            console.print(f"layer '{part.layer}': {copy}", soft_wrap=True, highlight=False, markup=False)


def _print_kernels(layers: Sequence[LayerKernelsPart], console: Console) -> None:
    """Print the kernels that were considered for each layer of the firmware, the chosen one marked by an arrow."""
    from rich.markup import escape

    rows = []
    for index, layer in enumerate(layers):
        for number, kernel in enumerate(layer.kernels):
            rows.append(
                (
                    "" if number else str(index),
                    "" if number else escape(layer.layer),
                    ("-> " if kernel.chosen else "   ") + escape(kernel.kernel),
                    *("" if cost is None else f"{cost:,}" for cost in _costs(kernel)),
                    _overlaps(layer) if kernel.chosen else "",
                    escape(kernel.reason),
                )
            )
    print_table(
        console,
        ("#", "layer", "kernel", "instructions", "weights, B", "scratch, B", "overlap, B", "why"),
        rows,
        right=("#", "instructions", "weights, B", "scratch, B"),
        whole=("layer", "kernel"),
        spare=("overlap, B", "scratch, B", "weights, B"),
        title="the firmware's kernels: estimates of one inference",
    )


def _costs(kernel: KernelPart) -> tuple[int | None, int | None, int | None]:
    return kernel.instructions, kernel.weight_bytes, kernel.scratch_bytes


def _overlaps(layer: LayerKernelsPart) -> str:
    """Return the distances between output and input from which on they may overlap."""
    lines = []
    for overlap in layer.overlaps:
        ways = [
            f"{bytes_:,} {way}"
            for bytes_, way in ((overlap.forward_bytes, "below"), (overlap.backward_bytes, "above"))
            if bytes_ is not None
        ]
        step = f", in steps of {overlap.step_bytes:,}" if overlap.step_bytes > 1 else ""
        lines.append(" or ".join(ways) + step)
    return "\n".join(lines)


def _print_device_crossings(crossings: Sequence[DeviceCrossingPart], console: Console) -> None:
    """Print what became of each tensor that crosses between the core and devices."""
    from rich.markup import escape

    rows = [
        (
            escape(part.tensor),
            escape(f"{part.writer} -> {part.reader}"),
            f"{part.bytes:,}",
            str(part.alignment),
            part.became,
            escape(part.why),
        )
        for part in crossings
    ]
    print_table(
        console,
        ("tensor", "crossing", "bytes", "aligned", "became", "why no better"),
        rows,
        whole=("tensor", "crossing"),
        title="the tensors that cross between the core and devices",
    )


def _taker(taker: TakerPart) -> str:
    if taker.backend is None:
        return "[bold red]no backend[/]"
    return _runner(taker.backend, taker.device)


def _runner(backend: str, device: str | None) -> str:
    return backend if device == backend else f"{backend}/{device}"


def _print_layers(inspection: Inspection, console: Console) -> None:
    from rich.markup import escape

    tensors = {tensor.name: tensor for tensor in inspection.tensors}
    rows: list[tuple[str, ...]] = []

    def add(layer: LayerInspection, number: str, known: Mapping[str, TensorPart]) -> None:
        def described(names: Sequence[str]) -> str:
            return escape("\n".join(_brief(known[name]) if name in known else name for name in names))

        rows.append(
            (
                number,
                escape(layer.name),
                layer.type,
                described(layer.inputs),
                described(layer.outputs),
                escape(_parameters(layer)),
                f"{layer.macs:,}",
                f"{layer.constant_bytes:,}",
            )
        )
        for each in layer.inner:  # whose tensors are not the network's
            add(each, f"{number}.{each.index}", {})

    for layer in inspection.layers:
        add(layer, str(layer.index), tensors)
    print_table(
        console,
        ("#", "layer", "type", "inputs", "outputs", "parameters", "MACs", "constants"),
        rows,
        right=("#", "MACs", "constants"),
        whole=("layer",),
        spare=("inputs", "parameters"),
        title=escape(inspection.name),
    )


def _parameters(layer: LayerInspection) -> str:
    rule = {} if layer.rounding == Rounding.TFLM else {"rounding": layer.rounding}
    return ", ".join(f"{name}={value}" for name, value in {**layer.parameters, **rule}.items())


def _brief(tensor: TensorPart) -> str:
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    return f"{tensor.dtype} {shape}{_quantization(tensor)}"


def _describe(tensor: TensorPart) -> str:
    return f"'{tensor.name}': {_brief(tensor)}"


def _quantization(tensor: TensorPart) -> str:
    if not tensor.scales:
        return ""
    if len(tensor.scales) > 1:
        return f", {len(tensor.scales)} scales on axis {tensor.axis}"
    return f", scale {tensor.scales[0]:.6g}, zero point {tensor.zero_points[0]}"
