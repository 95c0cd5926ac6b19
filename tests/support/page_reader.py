# SPDX-License-Identifier: Apache-2.0
"""Reads pages of reports as browsers do, and refuses what none of them may have, such as scripts."""

from __future__ import annotations

from html.parser import HTMLParser

from ferrule._typing import override

VOID = {"meta", "link", "br", "hr", "img", "input"}
SHAPES = {"line", "rect", "circle", "path"}
URLS = {"href": ("#", "data:,")}


class Page(HTMLParser):
    """Reads a page as browsers do: its tags with the names of their attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.structure: list[tuple[str, tuple[str, ...]]] = []
        self.values: list[str] = []
        self.texts: list[str] = []
        self.headings: list[int] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], "an element is not closed"

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = tuple(name for name, _ in attrs)
        assert tag not in {"script", "img", "iframe", "object", "form", "base", "foreignobject"}, tag
        assert not any(name.startswith("on") or name in {"src", "srcset", "xlink:href"} for name in names), (tag, names)
        assert len(set(names)) == len(names)
        for name, value in attrs:
            assert value is not None or name == "open"
            if name in URLS:
                assert (value or "").startswith(URLS[name])
            if name == "style":
                assert not set(value or "") & set("<>{};\"'\\"), value
            self.values.append(value or "")
        # a long name has a tooltip with all of it, and a short one has none
        self.structure.append((tag, tuple(name for name in names if (tag, name) != ("bdi", "title"))))
        if tag[0] == "h" and tag[1:].isdigit():
            self.headings.append(int(tag[1:]))
        if tag not in VOID:
            self._open.append(tag)

    @override
    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SHAPES
        self.handle_starttag(tag, attrs)
        self._open.pop()

    @override
    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag not in {"bdi", "strong"}:
            self.texts.append(" ")

    @override
    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @override
    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self) -> str:
        """All texts but the style, without line breaks."""
        return " ".join("".join(text for text in self.texts if "--bg:" not in text).split())
