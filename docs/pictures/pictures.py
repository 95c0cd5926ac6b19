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
    top: int
    bottom: int
    """In pixels from the top of the page."""
    code: int = 0
    """The exit code of the command."""
    dark: bool = False


PICTURES = (
    Picture(name="run", arguments=("kws_ref_model.tflite", *BOARD), top=0, bottom=1340),
    Picture(name="pictures", arguments=("kws_ref_model.tflite", *BOARD), top=1680, bottom=2640, dark=True),
    Picture(
        name="failure",
        arguments=("kws_ref_model.tflite", *BOARD, "--fault", "Woofles:bus-error@3"),
        top=0,
        bottom=598,
        code=2,
    ),
)


def take(picture: Picture, folder: Path) -> None:
    """Run the command in a folder, and write the picture of its page."""
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
        f"--window-size={WIDTH},{picture.bottom}",
        f"--screenshot={taken}",
        (folder / "report.html").as_uri(),
    ]
    subprocess.run(browser, check=True, stderr=subprocess.DEVNULL)
    with Image.open(taken) as whole:
        part = whole.convert("RGB").crop((0, picture.top, WIDTH, picture.bottom))
        part.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE).save(FOLDER / f"{picture.name}.png", optimize=True)


def main() -> None:
    """Make all pictures."""
    for picture in PICTURES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copy(Path(os.environ["FERRULE_MODELS"]) / picture.arguments[0], folder)
            take(picture, folder)


if __name__ == "__main__":
    main()
