# SPDX-License-Identifier: Apache-2.0
"""Reports of runs: as data, as JSON and on a terminal."""

from ferrule.report.compare import compare, worst
from ferrule.report.document import (
    SCHEMA_VERSION,
    BuildPart,
    ContractPart,
    CountPart,
    DeviceCallPart,
    DevicePart,
    DeviceTracePart,
    DeviceWorkPart,
    DifferencePart,
    FlashPart,
    LayerPart,
    MemoryPart,
    ModelPart,
    RamPart,
    ReportDocument,
    SamplePart,
    Verdict,
    json_schema,
)
from ferrule.report.run_report import RunReport

__all__ = [
    "SCHEMA_VERSION",
    "BuildPart",
    "ContractPart",
    "CountPart",
    "DeviceCallPart",
    "DevicePart",
    "DeviceTracePart",
    "DeviceWorkPart",
    "DifferencePart",
    "FlashPart",
    "LayerPart",
    "MemoryPart",
    "ModelPart",
    "RamPart",
    "ReportDocument",
    "RunReport",
    "SamplePart",
    "Verdict",
    "compare",
    "json_schema",
    "worst",
]
