# SPDX-License-Identifier: Apache-2.0
"""The report of a run, with the outputs as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ferrule._typing import override
from ferrule.graph import Array
from ferrule.report.document import LayerPart, MemoryPart, ReportDocument, SamplePart, Verdict
from ferrule.report.notebooks import shown_in_notebook

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The results of a run of a firmware."""

    document: ReportDocument
    outputs: list[Array]
    """The outputs of the model; the values of several samples are joined along the first axis.

    Stored values, or those they represent if the run was given real numbers.
    """

    @override
    def __repr__(self) -> str:
        return repr(self.document).replace("ReportDocument", "RunReport", 1)

    @property
    def verdict(self) -> Verdict:
        """The comparison of the outputs with the numpy reference, over all samples."""
        return self.document.verdict

    @property
    def layers(self) -> tuple[LayerPart, ...]:
        """The description and the cost of each layer."""
        return self.document.layers

    @property
    def memory(self) -> MemoryPart:
        """The use of flash and RAM."""
        return self.document.memory

    @property
    def samples(self) -> tuple[SamplePart, ...]:
        """The verdict of each sample."""
        return self.document.samples

    @property
    def count_per_inference(self) -> int:
        """Instructions (or cycles, see `document.count`) of one inference."""
        return self.document.count.per_inference

    def _repr_html_(self) -> str:
        return shown_in_notebook(self.document)

    def to_dataframe(self) -> DataFrame:
        """Return the layers as a pandas data frame; MissingToolError if pandas is not installed."""
        return self.document.to_dataframe()

    def to_json(self) -> str:
        """Return the document as indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self.document), indent=2).decode()
