# SPDX-License-Identifier: Apache-2.0
"""The report as JSON and as text."""

from __future__ import annotations

import io
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from golden import Golden
from saved_documents import MEMORY

from ferrule.report import (
    SCHEMA_VERSION,
    BuildPart,
    CountPart,
    DeviceCallPart,
    DevicePart,
    DeviceTracePart,
    DeviceWorkPart,
    LayerPart,
    ModelPart,
    ReportDocument,
    RunReport,
    SamplePart,
    Verdict,
    json_schema,
)
from ferrule.report.console import print_report
from ferrule.report.document import OwnershipPart
from ferrule.report.evidence import Evidence

LAYERS = (
    LayerPart(
        index=0,
        name="conv [bold]of[/] a long name/with/many/parts;and more",
        type="CONV_2D",
        backend="CpuAcc",
        kernel="conv2d_s8",
        macs=1_234_567,
        count=3_000_000,
        share=0.75,
        constant_bytes=1000,
        scratch_bytes=256,
    ),
    LayerPart(
        index=1,
        name="reshape",
        type="RESHAPE",
        backend="CpuAcc",
        kernel="view",
        macs=0,
        count=1_000_000,
        share=0.25,
        constant_bytes=0,
        scratch_bytes=0,
    ),
)
DOCUMENT = ReportDocument(
    ferrule_version="0.0.0",
    verdict=Verdict.EXACT,
    engine="unicorn",
    input="pattern",
    model=ModelPart(name="model [x]", digest="00" * 32, macs=1_234_567),
    build=BuildPart(
        board="mps2-an386",
        cpu="cortex-m4",
        toolchain="zig",
        toolchain_version="zig 0.0.0",
        optimization="O3",
        build_s=1.25,
    ),
    count=CountPart(unit="instructions", resolution=1, source="dwt", per_inference=4_000_123, exact=True),
    layers=LAYERS,
    memory=MEMORY,
    run_s=0.5,
    samples=(SamplePart(index=0, verdict=Verdict.EXACT, max_difference=0.0),),
    evidence=Evidence(samples=1, elements=10, numbers=10, layers=2),
)
WORK = DeviceWorkPart(read_bytes=12_345, written_bytes=678, busy=90_123)
DEVICES = replace(
    DOCUMENT,
    layers=(replace(LAYERS[0], backend="Npu", device="npu[0]", work=WORK), LAYERS[1]),
    devices=(
        DevicePart(
            name="npu[0]",
            backend="Npu",
            activation_lead=0,
            memory_bytes=0,
            memory_used=0,
            layers=1,
            count=3_000_000,
            share=0.75,
            work=WORK,
            statistics={"commands": 1_000, "hit [rate]": 0.5},
        ),
    ),
)
DIFFERENT = replace(
    DOCUMENT,
    verdict=Verdict.DIFFERENT,
    engine="qemu",
    input="x.npy",
    model=replace(DOCUMENT.model, macs=0),
    count=replace(DOCUMENT.count, resolution=40, source="systick", exact=False),
    samples=(
        SamplePart(index=0, verdict=Verdict.EXACT, max_difference=0.0),
        SamplePart(index=1, verdict=Verdict.WITHIN_BOUND, max_difference=1e-7),
        SamplePart(index=2, verdict=Verdict.DIFFERENT, max_difference=None),
        *(SamplePart(index=i, verdict=Verdict.DIFFERENT, max_difference=float(i)) for i in range(3, 16)),
    ),
)


def text(document: ReportDocument, *, width: int = 120, terminal: bool = False) -> str:
    from rich.console import Console

    stream = io.StringIO()
    print_report(
        document,
        Console(file=stream, width=width, force_terminal=terminal, color_system="truecolor" if terminal else None),
    )
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("exact.txt", DOCUMENT),
        ("different.txt", DIFFERENT),
        ("devices.txt", DEVICES),
        (
            "within_bound.txt",
            replace(
                DOCUMENT,
                verdict=Verdict.WITHIN_BOUND,
                samples=(SamplePart(index=0, verdict=Verdict.WITHIN_BOUND, max_difference=1e-7),),
            ),
        ),
    ],
)
def test_text(golden: Golden, name: str, document: ReportDocument) -> None:
    golden.check(name, text(document))


def test_numbers_in_sentences_have_no_colour_of_their_own() -> None:
    lines = text(DIFFERENT, terminal=True).splitlines()
    (samples,) = (line for line in lines if "agree with the reference" in line)
    assert samples == "samples: 2 of 16 agree with the reference"


def test_json_has_everything() -> None:
    for document in (DOCUMENT, DIFFERENT, DEVICES):
        report = RunReport.of(document, [np.zeros(1)])
        data = report.to_json()
        assert msgspec.json.decode(data, type=ReportDocument) == document
        plain = msgspec.json.decode(data)
        assert plain["schema_version"] == SCHEMA_VERSION
        assert plain["verdict"] in {"exact", "different"}
        assert [layer["name"] for layer in plain["layers"]] == [layer.name for layer in LAYERS]


def test_schema_describes_every_field() -> None:
    schema = json_schema()
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)

    def check(value: object, kind: str) -> None:
        properties = definitions[kind]["properties"]
        assert isinstance(value, dict)
        assert set(value) == set(properties)
        for name, field in value.items():
            reference = properties[name].get("$ref") or properties[name].get("items", {}).get("$ref")
            if reference is None:
                continue
            inner = reference.rpartition("/")[2]
            if "enum" in definitions[inner]:
                assert field in definitions[inner]["enum"]
                continue
            for each in field if isinstance(field, list) else [field]:
                check(each, inner)

    check(msgspec.json.decode(msgspec.json.encode(DIFFERENT)), "ReportDocument")


def test_shortcuts() -> None:
    report = RunReport.of(DOCUMENT, [])
    assert report.verdict is Verdict.EXACT
    assert report.layers == LAYERS
    assert report.memory.flash.total == 42_000
    assert report.count.per_inference == 4_000_123
    assert report.samples == DOCUMENT.samples


def test_devices_and_their_calls_are_printed() -> None:
    calls = (
        DeviceCallPart(operator=0, layer="conv [x]", device="npu0", call="open", status=0),
        DeviceCallPart(operator=0, layer="conv [x]", device="npu0", call="run", status=-12),
    )
    npu = DevicePart(name="npu0", backend="SoftNpu", activation_lead=0, memory_bytes=4096, memory_used=1234)
    npu = replace(npu, layers=3, count=12345, share=0.25)
    unit = DevicePart(name="unit0", backend="Unit", activation_lead=0, memory_bytes=0, memory_used=0)
    trace = DeviceTracePart(calls=calls, as_planned=False)
    shown = text(replace(DOCUMENT, devices=(npu, unit), device_trace=trace))
    assert "device npu0" in shown
    assert "SoftNpu, 3 layers, 12,345 instructions (25.0%), 1,234 of 4,096 B" in shown
    assert "Unit, 0 layers, 0 instructions (0.0%)\n" in "\n".join(line.rstrip() for line in shown.splitlines()) + "\n"
    assert "device calls: NOT as planned" in shown
    lines = [line.split() for line in shown.splitlines() if "conv [x]" in line and "npu0" in line]
    assert [line[-2] for line in lines] == ["ok", "(DEVICE)"]
    assert "device calls: none" in text(replace(DOCUMENT, device_trace=DeviceTracePart(calls=(), as_planned=True)))


def test_rules_of_rounding_are_printed_if_there_are_others_than_tflm() -> None:
    ruled = replace(DOCUMENT, layers=(replace(LAYERS[0], rounding="onnx"), *LAYERS[1:]))
    assert "rounding" not in text(DOCUMENT)
    lines = [line.split() for line in text(ruled).splitlines() if "_2D" in line or "RESHAPE" in line]
    assert [set(line) & {"onnx", "tflm"} for line in lines] == [{"onnx"}, {"tflm"}]


def test_ownership_is_all_allowed_only_if_an_inference_was_checked() -> None:
    plain = OwnershipPart(inferences=2, accesses=12345, transfers=6, cacheable=False, cache=False)
    off, on = replace(plain, cacheable=True), replace(plain, cacheable=True, cache=True)
    start = "\nownership: 2 inference(s) checked, 12,345 accesses of the core and 6 transfers of devices"
    cache = ("", ", without the lines of the data cache, which was off", ", with the lines of the data cache")
    for part, words in zip((plain, off, on), cache, strict=True):
        shown = text(replace(DOCUMENT, ownership=part), width=200)
        assert f"{start}{words}: all allowed\n" in shown
    shown = text(replace(DOCUMENT, ownership=replace(on, inferences=0)))
    assert "\nownership: nothing was checked, since the firmware announced the layers of no inference\n" in shown
    assert "all allowed" not in shown


def test_what_an_image_does_not_state_is_left_out() -> None:
    ram = replace(
        DOCUMENT.memory.ram,
        link=None,
        fault_stack=None,
        other=None,
        total=None,
        stack_bound=None,
        stack_bound_reason="[f] loops",
    )
    unknown = replace(
        DOCUMENT,
        engine="serial",
        build=replace(DOCUMENT.build, toolchain="", toolchain_version="", optimization="", build_s=None),
        count=replace(DOCUMENT.count, unit="cycles", exact=False),
        memory=replace(DOCUMENT.memory, flash=None, ram=ram),
    )
    shown = text(unknown)
    assert "flash" not in shown
    assert "RAM workspace 16,256 + stack 500 used of 16,384 stack bound none: [f] loops arena" in " ".join(
        shown.split()
    )
    assert "zig" not in shown
    assert "the firmware does not state how" in shown
    assert "(measured, by dwt" in shown
    assert "flash" not in repr(unknown)
    stated = replace(unknown.build, platform="zephyr", toolchain_version="GCC 12.2", optimization="O2", sources="ab12")
    shown = text(replace(unknown, build=stated))
    assert "for zephyr on mps2-an386 by GCC 12.2 -O2, as the firmware states; sources ab12" in shown
    assert "not counted: the firmware has no counter" in text(
        replace(unknown, count=replace(unknown.count, source="none"))
    )
