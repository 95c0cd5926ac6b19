# SPDX-License-Identifier: Apache-2.0
"""The report of a run, with the outputs as arrays."""

from __future__ import annotations

import msgspec

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
    def document(self) -> ReportDocument:
        """The report without the outputs, as `to_json` writes it."""
        return part_of(ReportDocument, self)

    @override
    def __repr__(self) -> str:
        return repr(self.document).replace("ReportDocument", "RunReport", 1)

    def to_json(self) -> str:
        """Return the document as indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self.document), indent=2).decode()
