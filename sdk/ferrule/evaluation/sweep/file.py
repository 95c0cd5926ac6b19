# SPDX-License-Identifier: Apache-2.0
"""sweep.toml: the models, boards, toolchains, engines, backends and options of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ferrule.documents import convert, read_toml, schema_of

Scalar = str | bool | int | float
Text = Annotated[str, msgspec.Meta(min_length=1)]
Texts = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Seed = Annotated[int, msgspec.Meta(ge=0)]
Match = dict[str, Scalar | tuple[Scalar, ...]]
"""Values by axis; a run matches if each axis has the value, or one of the values."""


class OptionsEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[options]: the values of each option; a run has one of each, and an option without values its default."""

    goal: tuple[str, ...] = ()
    optimization: tuple[str, ...] = ()
    overlap: tuple[str, ...] = ()
    rounding: tuple[str, ...] = ()
    signature: tuple[str, ...] = ()
    input_rows: tuple[bool, ...] = ()
    dequantize_weights: tuple[bool, ...] = ()
    onnx_arithmetic: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    """Shapes of inputs that an ONNX model leaves open, such as "image=1,3,32,32", several with blanks between them."""
    seed: tuple[Seed, ...] = ()
    """Seeds of random inputs; without a seed, the input is the fixed pattern of docs/running.md."""


class NeedsEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[needs]]: what the runs that match need besides a processor; of several entries, the later ones precede."""

    match: Match
    resources: dict[Text, Positive] = {}
    """Amounts of a worker's resources that a run takes, such as BOARD = 1."""
    lease: Text | None = None
    """The lease, one of [lease.<name>], that a run holds."""
    port: Text | None = None
    """The port of a real board, for the engine serial."""
    baud: Count | None = None
    load: tuple[Text, ...] = ()
    """The command that loads the firmware onto a real board before the run; {elf} stands for the file."""


NO_NEEDS = NeedsEntry(match={})


class LeaseEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[lease.<name>]: a place of labgrid, which a run acquires before it begins and releases at its end."""

    place: Text
    command: Texts = ("labgrid-client",)
    """The program labgrid-client with its options; it runs with its own Python, without this one's variables."""
    wait_s: Positive = 600.0
    """How long a run waits until the place is free."""
    limit_s: Positive = 600.0
    """How long a run may hold the place, which is then released; the run fails."""
    environment: dict[Text, str] = {}
    """Variables for the command, such as LG_COORDINATOR."""


class DataEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[data]: samples on which each model is evaluated, as by `ferrule evaluate`.

    All samples run on the host, and `proof` of them on each board. [data] of ferrule.toml says how they are prepared.
    """

    path: Text | Texts
    """As `--data`: a file, a folder, FILE.py:function, or NAME=FILE.npy for each input."""
    labels: Text | None = None
    metrics: tuple[Text, ...] = ()
    """As `--metric`; by default accuracy for classes, mae and mse for real values."""
    limit: Count | None = None
    sequence: Text | None = None
    score: Literal["output", "reconstruction"] = "output"
    output: Text | None = None
    proof: Count = 20
    """How many samples run on each board."""
    seed: Seed = 0
    """Draws these samples, and those of `limit`."""


class SweepFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of a sweep's file. Paths in it are relative to it."""

    models: Texts
    """Models' files; a name with * or ? stands for all files that match."""
    name: Text | None = None
    """By default, the file's name without its suffix."""
    boards: tuple[Text, ...] = ()
    """Names, or paths with a `/`; by default that of ferrule.toml, or mps2-an386, and likewise for the toolchains."""
    toolchains: tuple[Text, ...] = ()
    engines: tuple[Text, ...] = ()
    """By default that of ferrule.toml, or for each board the first that can run it, unicorn if it can."""
    backends: tuple[Text, ...] = ("CpuAcc",)
    """Each entry is a list of backends in order of preference, separated by commas, as for `--backends`."""
    options: OptionsEntry = OptionsEntry()
    backend_options: dict[Text, dict[Text, tuple[Scalar, ...]]] = {}
    """The values of backends' options, by backend and option."""
    exclude: tuple[Match, ...] = ()
    """Runs that match one of these are left out."""
    include: tuple[Match, ...] = ()
    """Further runs; an axis that an entry lacks has its first value."""
    needs: tuple[NeedsEntry, ...] = ()
    lease: dict[Text, LeaseEntry] = {}
    data: DataEntry | None = None
    samples: Count = 1
    """The number of random inputs of each run; more than one needs options.seed."""
    timeout_s: Positive = 60.0
    """Time limit for one inference."""
    clock: Literal["instructions", "cycles"] | None = None
    """What time is counted in; by default cycles with a deadline or a rate, and instructions otherwise."""
    deadline: Text | None = None
    """The most that an inference may take on the board, such as "50ms"; a run that takes longer is not a success."""
    rate: Text | None = None
    """How often an inference begins, such as "10/s", which it must keep up with, too."""


def read_file(path: Path) -> SweepFile:
    """Read a sweep's file.

    Raises:
        FerruleError: the file cannot be read or is malformed; the message names the key.
    """
    return convert(str(path), read_toml(path), SweepFile)


def sweep_file_schema() -> dict[str, object]:
    """Return the JSON Schema of a sweep's file; docs/schemas/sweep.toml.json is a copy."""
    return schema_of(SweepFile)
