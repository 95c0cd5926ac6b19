# SPDX-License-Identifier: Apache-2.0
"""The report of a run, with the outputs as arrays."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.graph import Array
from ferrule.report.base import part_of
from ferrule.report.run_document import ReportDocument


@frozen
class RunReport(ReportDocument):
    """The results of a run of a firmware: what its JSON has, by the same names, and the outputs."""

    outputs: list[Array]
    """The outputs of the model; the values of several samples are joined along the first axis.

    Stored values, or those they represent if the run was given real numbers.
    """

    @classmethod
    def of(cls, document: ReportDocument, outputs: list[Array]) -> RunReport:
        """Return a report of a document and the outputs."""
        return part_of(cls, document, outputs=outputs)

    @property
    @override
    def document(self) -> ReportDocument:
        """The report without the outputs."""
        return part_of(ReportDocument, self)

    __repr__ = ReportDocument.__repr__
