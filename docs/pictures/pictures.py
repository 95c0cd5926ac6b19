# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/reports.md from real runs.

    FERRULE_CHROMIUM=/usr/bin/chromium FERRULE_MODELS=models python docs/pictures/pictures.py

FERRULE_CHROMIUM names the program of Chromium, and FERRULE_MODELS the folder with the models of MLPerf Tiny
(docs/how-ferrule-is-tested.md). Pillow crops the pictures and gives each a palette of 96 colours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parent
WIDTH = 1000
COLOURS = 96
BOARD = ("--board", "mps2-an386", "--backends", "Woofles,CpuAcc")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A part of a page."""

    name: str
    arguments: tuple[str, ...]
    """Of `ferrule run`."""
    spans: tuple[tuple[int, int], ...]
    """What it shows of the page: from and to which pixel from the top."""
    code: int = 0
    """The exit code of the command."""
    dark: bool = False
    settings: str = ""
    """The text of ferrule.toml; empty for none."""


PICTURES = (
    Picture(name="run", arguments=("kws_ref_model.tflite", *BOARD), spans=((0, 1395),)),
    Picture(name="pictures", arguments=("kws_ref_model.tflite", *BOARD), spans=((2634, 4339),), dark=True),
    Picture(
        name="time",
        arguments=("kws_ref_model.tflite", *BOARD, "--clock", "cycles"),
        spans=((0, 422), (1860, 2492)),
        settings='[devices.npu0]\nbackend = "Woofles"\nbinding = { use_interrupt = 1 }\n',
    ),
    Picture(
        name="failure",
        arguments=("kws_ref_model.tflite", *BOARD, "--fault", "Woofles:bus-error@3"),
        spans=((0, 598),),
        code=2,
    ),
)


def take(picture: Picture, folder: Path) -> None:
    """Run the command in a folder, and write the picture of its page."""
    if picture.settings:
        (folder / "ferrule.toml").write_text(picture.settings, encoding="utf-8")
    command = [sys.executable, "-m", "ferrule", "run", *picture.arguments, "--quiet", "--html", "report.html"]
    done = subprocess.run(command, cwd=folder, check=False, stderr=subprocess.DEVNULL)
    if done.returncode != picture.code:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}, expected {picture.code}")
    taken = folder / "page.png"
    browser = [
        os.environ["FERRULE_CHROMIUM"],
        *OPTIONS,
        f"--blink-settings=preferredColorScheme={int(not picture.dark)}",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={WIDTH},{max(bottom for _, bottom in picture.spans)}",
        f"--screenshot={taken}",
        (folder / "report.html").as_uri(),
    ]
    subprocess.run(browser, check=True, stderr=subprocess.DEVNULL)
    shown, filled = Image.new("RGB", (WIDTH, sum(bottom - top for top, bottom in picture.spans))), 0
    with Image.open(taken) as whole:
        for top, bottom in picture.spans:
            shown.paste(whole.convert("RGB").crop((0, top, WIDTH, bottom)), (0, filled))
            filled += bottom - top
    shown.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE).save(FOLDER / f"{picture.name}.png", optimize=True)


def main() -> None:
    """Make all pictures."""
    for picture in PICTURES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copy(Path(os.environ["FERRULE_MODELS"]) / picture.arguments[0], folder)
            take(picture, folder)


if __name__ == "__main__":
    main()
