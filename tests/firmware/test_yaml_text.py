# SPDX-License-Identifier: Apache-2.0
"""YAML text that readers of versions 1.1 and 1.2 parse alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from needs import require_module

from ferrule.firmware.yaml_text import yaml_text
from ferrule.rendering import yaml_scalar as scalar


def read(text: str, version: str) -> Any:  # noqa: ANN401 whatever stands there
    require_module("ruamel.yaml", "pip install -e '.[dev]'")
    from ruamel.yaml import YAML

    reader = YAML(typ="safe", pure=True)
    reader.version = version  # type: ignore[assignment]
    return reader.load(text)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(TEXTS, inner, min_size=1, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize("word", ["on", "Off", "yes", "NO", "y", "null", "true", "~", "1", "1.0", "0x10", "1:30"])
def test_words_stand_in_quotes(word: str) -> None:
    assert scalar(word) == f'"{word}"'


@pytest.mark.parametrize(
    "text", ["main.c", "./a/b.c", "ARM::CMSIS:RTOS2:Keil RTX5&Source", "-Wl,--gc-sections", "ARM::CMSIS@^6.1.0"]
)
def test_plain_things_stand_plain(text: str) -> None:
    assert scalar(text) == text


@example("---")
@example("<<")
@example("- a")
@example("a: b")
@example("a #b")
@example("a ")
@example("%YAML")
@example("\u0085\u2028")
@given(TEXTS)
def test_a_string_comes_back(text: str) -> None:
    for version in ("1.1", "1.2"):
        assert read(yaml_text({"key": text}), version) == {"key": text}


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4))
def test_a_document_comes_back(content: dict[str, Any]) -> None:
    for version in ("1.1", "1.2"):
        assert read(yaml_text(content, comment="one\n\ntwo: 2"), version) == content
