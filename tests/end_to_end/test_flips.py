# SPDX-License-Identifier: Apache-2.0
"""A slice of the campaign tests/flips.py: each flipped bit that changes an output is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flip_campaign import Flips, own_network
from needs import require_module

from ferrule.report import Verdict


@pytest.mark.parametrize("natively", [False, True], ids=["on the board", "natively"])
def test_no_flip_is_missed(natively: bool, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    flips = Flips(own_network(), "mps2-an386", tmp_path, natively=natively)
    generator = np.random.default_rng(4)
    found = [flips.judge(flips.draw(generator)) for _ in range(12)]
    assert not [each for each in found if each.is_missed]
    assert {each.verdict for each in found} == {Verdict.EXACT, Verdict.DIFFERENT}
    assert {each.beyond for each in found} == {True, False}
