# SPDX-License-Identifier: Apache-2.0
"""Address ranges that a platform description names without modelling them.

Renode's command `Tag <0x40010000, 0x40010FFF> "gpio0"` (or `<0x40010000 0x1000>`) in the `init:` of `sysbus` states
that the board has something there, which reads as zero and ignores writes.
"""

from __future__ import annotations

import re

from ferrule._frozen import frozen
from ferrule.backends.target import AddressRange
from ferrule.boards.repl import Platform

_NUMBER = r"(0[xX][0-9a-fA-F]+|\d+)"
_TAG = re.compile(rf'\s*(?:sysbus\s+)?Tag\s*<\s*{_NUMBER}\s*(,|\s)\s*{_NUMBER}\s*>\s*"([^"]*)"\s*$')


@frozen
class Tag(AddressRange):
    """A range of addresses without a model."""


def tags(platform: Platform) -> tuple[Tag, ...]:
    """Return the tags of `sysbus`, in the order of the description; tags with a read value are left out."""
    found = []
    bus = platform.entries.get("sysbus")
    for script in bus.scripts if bus else ():
        for line in script.lines:
            match = _TAG.match(line)
            if match is None:
                continue
            first, separator, second, name = match.groups()
            start, number = int(first, 0), int(second, 0)
            size = number + 1 - start if separator == "," else number
            if size > 0:
                found.append(Tag(name=name, address=start, size_bytes=size))
    return tuple(found)
