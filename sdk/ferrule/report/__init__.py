# SPDX-License-Identifier: Apache-2.0
"""Reports of runs, evaluations and sweeps: as data, in files, on a terminal and as pages."""

from ferrule.report.base import Document
from ferrule.report.comparison import compare_documents
from ferrule.report.console import print_report
from ferrule.report.document import (
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
    SamplePart,
    Verdict,
)
from ferrule.report.html import html_fragment, html_page
from ferrule.report.limits import Limits, parse_limits
from ferrule.report.reading import read_document
from ferrule.report.run_document import SCHEMA_VERSION, ReportDocument, json_schema
from ferrule.report.run_report import RunReport
from ferrule.report.verdicts import compare, worst
from ferrule.report.writers import WRITERS

__all__ = [
    "SCHEMA_VERSION",
    "WRITERS",
    "BuildPart",
    "ContractPart",
    "CountPart",
    "DeviceCallPart",
    "DevicePart",
    "DeviceTracePart",
    "DeviceWorkPart",
    "DifferencePart",
    "Document",
    "FlashPart",
    "LayerPart",
    "Limits",
    "MemoryPart",
    "ModelPart",
    "RamPart",
    "ReportDocument",
    "RunReport",
    "SamplePart",
    "Verdict",
    "compare",
    "compare_documents",
    "html_fragment",
    "html_page",
    "json_schema",
    "parse_limits",
    "print_report",
    "read_document",
    "worst",
]
