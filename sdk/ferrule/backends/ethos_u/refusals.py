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


def reasons_of(result: VelaResult) -> Mapping[str, str]:
    """Return the reasons against operators, by the name of the tensor that each writes in the model.

    The first line of a reason is about this operator; a constraint of Vela follows, shortened to its first line.
    """
    reasons: dict[str, str] = {}
    for match in _WARNING.finditer(result.log):
        first, *constraint = (line.strip() for line in match["reason"].splitlines())
        text = " ".join([first.rstrip(".") + (":" if constraint else ""), *constraint[:1]]).rstrip(":.")
        kind = "" if match["type"] == "None" else f"{match['type']}: "
        reasons.setdefault(match["tensor"].removesuffix(_ACTIVATION), f"Vela leaves it to the core: {kind}{text}")
    return reasons
