# SPDX-License-Identifier: Apache-2.0
"""Requirements of buffers on the storage that they share."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.memory import Lifetime, Region, Request, plan
from ferrule.memory.request import Alias, AliasKind

FIRST = Request(name="first", size_bytes=12, lifetime=Lifetime(first=0, last=1), regions=("sram",), alignment=4)
SECOND = replace(FIRST, name="second", lifetime=Lifetime(first=1, last=2), alignment=6)
ABOVE = replace(FIRST, name="above", size_bytes=10, lifetime=Lifetime(first=0, last=2), alignment=1)


@given(st.integers(1, 40), st.integers(1, 40))
def test_shared_storage_is_aligned_for_each_of_its_buffers(first: int, second: int) -> None:
    requests = [replace(FIRST, alignment=first), replace(SECOND, alignment=second), ABOVE]
    regions = (Region(name="sram", size_bytes=10_000, alignment=1),)
    alias = Alias(output="second", input="first", kind=AliasKind.IN_PLACE)
    found = plan(requests, regions, aliases=[alias])
    alignment = found.region("sram").alignment
    assert (alignment % first, alignment % second) == (0, 0)
    offset = found.placements["first"].offset
    assert (offset % first, offset % second) == (0, 0)


@pytest.mark.parametrize(("first", "second", "both"), [(4, 6, 12), (6, 4, 12), (8, 4, 8), (3, 5, 15)])
def test_it_is_aligned_to_no_more_than_both_need(first: int, second: int, both: int) -> None:
    requests = [replace(FIRST, alignment=first), replace(SECOND, alignment=second)]
    regions = (Region(name="sram", size_bytes=10_000, alignment=1),)
    found = plan(requests, regions, aliases=[Alias(output="second", input="first", kind=AliasKind.IN_PLACE)])
    assert found.region("sram").alignment == both
