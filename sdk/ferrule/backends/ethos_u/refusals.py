# SPDX-License-Identifier: Apache-2.0
"""Vela's reasons for leaving operators to the core, as it prints them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ferrule.backends.ethos_u.vela import VelaResult

_WARNING = re.compile(
    r"^Warning \(supported operators\) operator: (?P<type>\S+), ofm: '(?P<tensor>.*)'\n"
    r"Reason: (?P<reason>.*(?:\n(?!\n|Warning|\w+:).+)*)",
    re.MULTILINE,
)
_ACTIVATION = "_act"
"""What Vela appends to the name of a tensor before a fused activation."""
_UNKNOWN = "Unsupported opType"


def reasons_of(result: VelaResult) -> Mapping[str, str]:
    """Return the reasons against operators, by the name of the tensor that each writes in the model.

    A reason is what Vela says about this operator, with the constraint of Vela if that has a single line.
    """
    reasons: dict[str, str] = {}
    for match in _WARNING.finditer(result.log):
        first, *constraint = (" ".join(line.split()).rstrip(".:") for line in match["reason"].splitlines())
        tensor = match["tensor"].removesuffix(_ACTIVATION)
        if first == _UNKNOWN:
            reasons.setdefault(tensor, "Vela has no such operator for the NPU")
            continue
        text = "; ".join([first, *constraint]) if len(constraint) == 1 else first
        reasons.setdefault(tensor, f"Vela leaves {match['type']} to the core: {text}")
    return reasons
