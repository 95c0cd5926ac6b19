# SPDX-License-Identifier: Apache-2.0
"""Prints reports on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.graph import Rounding
from ferrule.interface import option, spelled
from ferrule.link import CounterSource, status_text
from ferrule.report.document import (
    BuildPart,
    CountPart,
    DevicePart,
    DeviceTracePart,
    DifferencePart,
    LayerPart,
    OwnershipPart,
    RamPart,
    ReportDocument,
    Verdict,
)
from ferrule.report.estimates import print_estimates
from ferrule.report.tables import print_table
from ferrule.report.words import styled_verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_SAMPLES_LISTED = 10


def print_report(document: ReportDocument, console: Console) -> None:
    """Print the table of layers, the totals and the verdict."""
    _print_layers(document, console)
    _print_work(document, console)
    print_estimates(document.estimates, console)
    if document.device_trace is not None:
        _print_trace(document.device_trace, console)
    console.print(_totals(document))
    _print_samples(document, console)
    if document.self_test:
        console.print(f"self-test at start-up: {document.self_test.replace('_', ' ')}", highlight=False)
    if document.ownership is not None:
        console.print(_ownership(document.ownership), highlight=False)
    if document.contract is not None and document.contract.unchecked:
        text = f"contract of the devices: not checked, since {document.contract.unchecked}"
        console.print(text, highlight=False, markup=False)
    for device in document.devices:
        _print_notes(device, console)
    for fault in document.faults:
        console.print(f"injected: {fault}", highlight=False, markup=False)
    if document.first_difference is not None:
        console.print(_difference(document.first_difference), highlight=False, markup=False)
    elif document.verdict is Verdict.DIFFERENT and document.engine != "serial":
        text = spelled(f"a run with {option('locate')} names the first layer that differs")
        console.print(text, highlight=False, markup=False)
    console.print(f"compared: {document.evidence.text}", highlight=False)
    if document.reference is not None:
        console.print(f"floats: compared with {document.reference.text}", highlight=False, markup=False)
    console.print(f"verdict: {styled_verdict(document.verdict)}", highlight=False)


def _print_notes(device: DevicePart, console: Console) -> None:
    from ferrule.devices.register_text import registers_text

    for note in device.notes:
        console.print(f"note: device {device.name}: {note}", highlight=False, markup=False)
    if device.registers:
        console.print(f"registers of {device.name}: {registers_text(device.registers)}", highlight=False, markup=False)


def _difference(part: DifferencePart) -> str:
    if not part.layer:
        return f"first difference: {part.note}"
    runner = part.backend if part.device in {"", part.backend} else f"{part.backend}/{part.device}"
    extent = "" if part.max_difference is None else f", by up to {part.max_difference:g}"
    return f"first difference: layer '{part.layer}' ({part.type}) on {runner}, tensor '{part.tensor}'{extent}"


def _ownership(part: OwnershipPart) -> str:
    if not part.inferences:
        return "ownership: nothing was checked, since the firmware announced the layers of no inference"
    cache = ", without the lines of the data cache, which was off" if part.cacheable else ""
    cache = ", with the lines of the data cache" if part.cache else cache
    return (
        f"ownership: {part.inferences} inference(s) checked, {part.accesses:,} accesses of the core and "
        f"{part.transfers:,} transfers of devices{cache}: all allowed"
    )


def _print_layers(document: ReportDocument, console: Console) -> None:
    from rich.markup import escape

    counted = ("MACs", document.count.unit, "share")
    overlaps = any(layer.beside for layer in document.layers)
    ruled = any(layer.rounding != Rounding.TFLM for layer in document.layers)
    rows = [
        (
            str(layer.index),
            escape(layer.name),
            layer.type,
            *((layer.rounding,) if ruled else ()),
            _runner(layer),
            layer.kernel,
            f"{layer.macs:,}",
            f"{layer.count:,}",
            f"{layer.share:.1%}",
            *((escape(", ".join(layer.beside)),) if overlaps else ()),
        )
        for layer in document.layers
    ]
    kinds = ("type", *(("rounding",) if ruled else ()))
    print_table(
        console,
        ("#", "layer", *kinds, "backend", "kernel", *counted, *(("beside",) if overlaps else ())),
        rows,
        right=("#", *counted),
        whole=("layer", "backend"),
        optional=("kernel", "MACs", "type"),
        title=escape(f"{document.model.name} on {document.build.board} by {document.engine}"),
    )
    for layer in document.layers:
        for copy in layer.copies:
            console.print(f"layer '{layer.name}': {copy}", soft_wrap=True, highlight=False, markup=False)


def _print_work(document: ReportDocument, console: Console) -> None:
    """Print the transfers and the time of device models by layer, if any are known."""
    from rich.markup import escape

    worked = [(layer, layer.work) for layer in document.layers if layer.work is not None]
    if not worked:
        return
    counted = ("bytes read", "bytes written", f"{document.count.unit} at work")
    rows = [
        (
            str(layer.index),
            escape(layer.name),
            _runner(layer),
            *(f"{number:,}" for number in (work.read_bytes, work.written_bytes, work.busy)),
        )
        for layer, work in worked
    ]
    exactness = "exact" if all(work.exact for _, work in worked) else "measured"
    guesses = [device.name for device in document.devices if device.estimated]
    if guesses:
        exactness += f", with estimates of the time that {', '.join(guesses)} would take"
    print_table(
        console,
        ("#", "layer", "device", *counted),
        rows,
        right=("#", *counted),
        whole=("layer", "device"),
        title=escape(f"what the devices' models did ({exactness})"),
    )


def _runner(layer: LayerPart) -> str:
    """Return the backend, followed by its device if that has another name."""
    return layer.backend if layer.device in {"", layer.backend} else f"{layer.backend}/{layer.device}"


def _totals(document: ReportDocument) -> Table:
    from rich.markup import escape
    from rich.table import Table

    flash, ram, build = document.memory.flash, document.memory.ram, document.build
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column()
    table.add_row(f"{document.count.unit} per inference", _count(document.count, document.model.macs))
    if flash is not None:
        table.add_row(
            "flash",
            f"{flash.total:,} B = code {flash.code:,} + constants {flash.constants:,} + weights {flash.weights:,}",
        )
    parts = f"workspace {ram.workspace:,} + stack {ram.stack_used:,} used of {ram.stack_reserved:,}"
    if ram.total is not None:
        apart = f" + link {ram.link:,} + fault stack {ram.fault_stack:,}" if ram.link or ram.fault_stack else ""
        parts = f"{ram.total:,} B = {parts}{apart} + other {ram.other:,}"
    table.add_row("RAM", parts)
    table.add_row("stack bound", _stack_bound(ram))
    arena = document.memory.arena
    table.add_row("arena", f"{arena.size_bytes:,} B, {arena.certificate}")
    table.add_row("", arena.bounds)
    if arena.state_bytes:
        table.add_row("state", f"{arena.state_bytes:,} B of the workspace, from one inference to the next")
    for device in document.devices:
        memory = f", {device.memory_used:,} of {device.memory_bytes:,} B" if device.memory_bytes else ""
        took = _took(device.layers, device.count, device.share, document.count.unit)
        table.add_row(f"device {device.name}", f"{device.backend}, {took}{memory}")
        if device.statistics:
            counts = ", ".join(f"{name} {number:,}" for name, number in device.statistics.items())
            table.add_row("", f"{escape(counts)} ({'exact, but for estimates' if device.estimated else 'exact'})")
        if device.driver_counts:
            counts = ", ".join(f"{name} {number:,}" for name, number in device.driver_counts.items())
            table.add_row("", f"by its driver: {escape(counts)}")
    if document.devices:
        table.add_row("core", _core(document))
    table.add_row("built", _built(build))
    table.add_row("ran", f"in {document.run_s:.1f} s, {len(document.samples)} sample(s), input: {document.input}")
    return table


def _stack_bound(ram: RamPart) -> str:
    from rich.markup import escape

    if ram.stack_bound is None:
        return f"none: {escape(ram.stack_bound_reason)}"
    return f"{ram.stack_bound:,} B, {ram.stack_bound / max(ram.stack_used, 1):.2f} times the measured use"


def _built(build: BuildPart) -> str:
    """Return the description of the build; it says so if the firmware on the board is another build than the job's."""
    if build.build_s is not None:
        return f"in {build.build_s:.1f} s by {build.toolchain_version} -{build.optimization}"
    if not build.sources:
        return "the firmware does not state how"
    how = f" by {build.toolchain_version}" if build.toolchain_version else ""
    level = f" -{build.optimization}" if build.optimization else ""
    return f"for {build.platform} on {build.board}{how}{level}, as the firmware states; sources {build.sources}"


def _core(document: ReportDocument) -> str:
    """Return the cost of the layers that run on the core, as text."""
    names = {(device.backend, device.name) for device in document.devices}
    own = [layer for layer in document.layers if (layer.backend, layer.device) not in names]
    return _took(len(own), sum(x.count for x in own), sum(x.share for x in own), document.count.unit)


def _took(layers: int, count: int, share: float, unit: str) -> str:
    return f"{layers} layer{'' if layers == 1 else 's'}, {count:,} {unit} ({share:.1%})"


def _print_trace(trace: DeviceTracePart, console: Console) -> None:
    from rich.markup import escape

    if not trace.calls:
        console.print("device calls: none, no layer runs on a device", highlight=False)
        return
    rows = [
        (
            str(call.operator),
            escape(call.layer),
            call.device,
            call.call,
            status_text(call.status) if call.status else "ok",
        )
        for call in trace.calls
    ]
    headings = ("#", "layer", "device", "call", "status")
    print_table(console, headings, rows, whole=("layer", "device", "call"), title="device calls")
    console.print(f"device calls: {'as planned' if trace.as_planned else 'NOT as planned'}", highlight=False)


def _count(count: CountPart, macs: int) -> str:
    if count.source == CounterSource.NONE:
        return "not counted: the firmware has no counter"
    ratio = f", {count.per_inference / macs:.2f} per MAC" if macs else ""
    exactness = "exact" if count.exact else "measured" if count.resolution <= 1 else f"in steps of {count.resolution}"
    return f"{count.per_inference:,} ({exactness}, by {count.source}{ratio})"


def _print_samples(document: ReportDocument, console: Console) -> None:
    if len(document.samples) > 1:
        equal = sum(sample.verdict.agrees for sample in document.samples)
        console.print(f"samples: {equal} of {len(document.samples)} agree with the reference", highlight=False)
    different = [sample for sample in document.samples if sample.verdict is Verdict.DIFFERENT]
    for sample in different[:_SAMPLES_LISTED]:
        extent = "" if sample.max_difference is None else f" by up to {sample.max_difference:g}"
        console.print(f"  sample {sample.index} differs{extent}", highlight=False)
    if len(different) > _SAMPLES_LISTED:
        console.print(f"  and {len(different) - _SAMPLES_LISTED} more", highlight=False)
