# SPDX-License-Identifier: Apache-2.0
"""Names that are handed out once."""

from __future__ import annotations

from ferrule.graph.names import UniqueNames


def test_a_taken_name_gets_the_first_free_number() -> None:
    names = UniqueNames(["layer", "layer_2"])
    assert [names.take(wanted) for wanted in ("layer", "layer", "other", "other", "layer_2")] == [
        "layer_3",
        "layer_4",
        "other",
        "other_2",
        "layer_2_2",
    ]


def test_a_free_name_stays_free_until_it_is_added() -> None:
    names = UniqueNames()
    assert names.free("layer") == names.free("layer") == "layer"
    names.add("layer")
    assert names.free("layer") == "layer_2"
