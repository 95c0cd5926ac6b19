# SPDX-License-Identifier: Apache-2.0
"""The picture of the corpus: each shape's instructions as a part of CMSIS-NN's, as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from xml.sax.saxutils import escape

_COLOURS = {"m4 int8": "#1f6feb", "m4 int16": "#8cb8f5", "m55 int8": "#d9480f", "m55 int16": "#f5a97c"}
_TITLES = {
    "m4 int8": "Cortex-M4, int8",
    "m4 int16": "Cortex-M4, int16",
    "m55 int8": "Cortex-M55, int8",
    "m55 int16": "Cortex-M55, int16",
}
_LINE, _NAMES, _WIDTH, _TOP = 15, 150, 560, 48
_LEAST = 0.02
_MARKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1)


def _x(ratio: float) -> float:
    """Return the place of a ratio on an axis with a logarithmic scale."""
    return _NAMES + _WIDTH * (log10(max(ratio, _LEAST)) - log10(_LEAST)) / -log10(_LEAST)


def picture(ratios: Mapping[str, float], most: float) -> str:
    """Return the picture of ratios by row, such as "m4 int8 mul", with a line at the largest that is wanted."""
    shapes = sorted({name.split()[-1] for name in ratios})
    height = _TOP + _LINE * len(shapes) + 12
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_NAMES + _WIDTH + 20} {height}" '
        'font-family="sans-serif" font-size="10">',
        f'<rect width="{_NAMES + _WIDTH + 20}" height="{height}" fill="white"/>',
    ]
    for index, (kind, colour) in enumerate(_COLOURS.items()):
        x = _NAMES + index * 135
        drawn.append(f'<circle cx="{x}" cy="11" r="4" fill="{colour}"/>')
        drawn.append(f'<text x="{x + 8}" y="15" fill="#333">{_TITLES[kind]}</text>')
    for mark in _MARKS:
        colour = "#333" if mark == 1 else "#ddd"
        drawn.append(
            f'<line x1="{_x(mark):.1f}" x2="{_x(mark):.1f}" y1="{_TOP - 8}" y2="{height - 12}" stroke="{colour}"/>'
        )
        drawn.append(f'<text x="{_x(mark):.1f}" y="{_TOP - 12}" text-anchor="middle" fill="#333">{mark:g}</text>')
    drawn.append(
        f'<line x1="{_x(most):.1f}" x2="{_x(most):.1f}" y1="{_TOP - 8}" y2="{height - 12}" stroke="#d00" '
        'stroke-dasharray="4 3"/>'
    )
    drawn.append(f'<text x="{_x(most):.1f}" y="{_TOP - 12}" text-anchor="middle" fill="#d00">{most:g}</text>')
    for index, shape in enumerate(shapes):
        y = _TOP + _LINE * index + 6
        drawn.append(f'<text x="{_NAMES - 8}" y="{y + 3}" text-anchor="end" fill="#333">{escape(shape)}</text>')
        drawn.append(f'<line x1="{_NAMES}" x2="{_NAMES + _WIDTH}" y1="{y}" y2="{y}" stroke="#eee"/>')
        drawn += [
            f'<circle cx="{_x(ratio):.1f}" cy="{y}" r="4" fill="{_COLOURS[name.rsplit(" ", 1)[0]]}">'
            f"<title>{escape(name)}: {ratio:.2f}</title></circle>"
            for name, ratio in sorted(ratios.items())
            if name.split()[-1] == shape
        ]
    return "\n".join([*drawn, "</svg>"]) + "\n"
