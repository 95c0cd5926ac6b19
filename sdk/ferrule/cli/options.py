# SPDX-License-Identifier: Apache-2.0
"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ferrule._frozen import frozen
from ferrule.cli import completion
from ferrule.cli.parameters import FILE, PATH, POSITIVE, Option, collected, flag, option, several, together
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.boards import Board
    from ferrule.codegen.acl import AclOptions
    from ferrule.devices import Fault
    from ferrule.firmware import Job
    from ferrule.running import RunRequest
    from ferrule.running.configuration import Configuration

BOARD = "mps2-an386"
TOOLCHAIN = "zig"
ENGINE = "unicorn, or else one that can run the board"
"""The default of --engine, as help texts state it."""
OPTIMIZATIONS = ("O3", "O2", "Os")
OVERLAPS = ("on", "off")
"""The values of ferrule.firmware.job.OVERLAPS, copied so that --help does not import it; a test compares them."""
GOALS = ("speed", "balanced", "size", "memory", "time")
"""The values of ferrule.firmware.job.GOALS, copied so that --help does not import it; a test compares them."""
CLOCKS = ("instructions", "cycles")
"""The values of ferrule.emulation.Clock, copied so that --help does not import it; a test compares them."""
TRANSFERS = ("import", "copy")
"""The values of ferrule.optimizer.options.TRANSFERS, copied so that --help does not import it; a test compares them."""
TARGETS = ("arm-gpu-c++", "arm-cpu-c++")
"""The names in ferrule.codegen.acl.TARGETS, copied so that --help does not import it; a test compares them."""
ACL_VERSIONS = ("20.08", "24.11")
"""The values of ferrule.codegen.acl.VERSIONS, copied so that --help does not import it; a test compares them."""
PLATFORMS = ("bare-metal", "cmsis", "freertos", "threadx", "zephyr")
"""The names in ferrule.firmware.PLATFORMS, copied so that --help does not import it; a test compares them."""


ARENAS = ("separate", "shared")
"""The values of ferrule.firmware.Job.arena, copied so that --help does not import it; a test compares them."""


GDB_TIMEOUT_S = 7 * 24 * 3600.0
"""Time-out of one inference while gdb is attached: in effect none."""


def engine_name(given: str | None, configuration: Configuration, board: str | Path | Board | None) -> str:
    """Return the engine: --engine, that of ferrule.toml, or one that can run the board."""
    from ferrule.emulation import fitting_engine

    return given or configuration.engine or fitting_engine(board or BOARD)


model_argument = click.argument("model", type=PATH)
"""The argument MODEL, a .tflite, .onnx or .pt2 file, or - for standard input."""
models_argument = click.argument("models", metavar="MODEL...", type=PATH, nargs=-1, required=True)
"""The argument MODEL..., one or several of them."""
arena_option = option(
    "--arena",
    "Several models: a workspace for each, or one for all, which a lock protects.",
    kind=ARENAS,
    default=ARENAS[0],
)
board_option = option(
    "--board",
    "A board's name (see `ferrule boards`), or the path of a board's folder.",
    shown=BOARD,
    shell_complete=completion.boards,
)
config_option = option(
    "--config",
    "The file with the project's board, toolchain, engine, backends and devices, all of which are optional; "
    "by default ferrule.toml in the current folder, if it exists.",
    kind=FILE,
)
quiet_option = flag("-q --quiet", "Print errors only.")
json_option = flag("--json", "Print JSON.", "as_json")


def names_option(more: str = "") -> Option:
    """Add --name, once for each model, as `names`."""
    text = "A model's name, from which its C names are made; for several models, repeat the option in their order. "
    return option("--name", f"{text}[default: the file's name]  {more}".rstrip(), "names", multiple=True)


def platform_option(text: str) -> Option:
    """Add --platform with a text for --help."""
    return option("--platform", text, kind=PLATFORMS, default=PLATFORMS[0])


def check_toolchain(name: str | None, platform: str) -> None:
    """Raise FerruleError if --toolchain is given for a platform whose own tools choose the compiler."""
    if name is not None and platform != PLATFORMS[0]:
        raise FerruleError(
            f"--toolchain {name}: the tools of platform {platform} choose the compiler",
            hint="docs/running.md has the variables that they read",
        )


@frozen
class ClassOptions:
    """The options of a C++ class over the Arm Compute Library as typed by the user."""

    target: str | None
    acl_version: str | None
    float16: bool

    def acl(self) -> AclOptions:
        """Return the options for the generator."""
        from ferrule.codegen.acl import DEFAULT_VERSION, AclOptions

        return AclOptions(version=self.acl_version or DEFAULT_VERSION, float16=self.float16)

    def refuse_without_target(self) -> None:
        """Raise FerruleError if options that need --target are given without it."""
        if self.target is None and any((self.acl_version, self.float16)):
            raise FerruleError("--acl-version and --float16 are only valid with --target")


class_options = collected(
    "classes",
    ClassOptions,
    option(
        "--target",
        "A C++ class over the Arm Compute Library instead of firmware: for Arm GPUs (OpenCL) or Arm processors (NEON).",
        kind=TARGETS,
    ),
    option(
        "--acl-version",
        "With --target: the oldest version of the Arm Compute Library that the class is for.",
        kind=ACL_VERSIONS,
        shown=ACL_VERSIONS[0],
    ),
    flag("--float16", "With --target: compute a float32 network in float16, which the processor or GPU must support."),
)
"""Passed as one argument `classes`."""


@frozen
class JobOptions:
    """A job's options as typed by the user; options that a command lacks have their defaults."""

    backends: str | None
    hints: tuple[str, ...]
    devices: tuple[str, ...]
    backend_options: tuple[str, ...]
    config: Path | None
    board: str | None
    no_fallback: bool = False
    import_enabled: bool = False
    fallbacks: tuple[str, ...] = ()
    toolchain: str | None = None
    optimization: str | None = None
    overlap: str | None = None
    goal: str | None = None
    prices: tuple[str, ...] = ()
    input_rows: bool = False
    self_test: bool = False

    def job(
        self,
        configuration: Configuration | None = None,
        *,
        platform: str = PLATFORMS[0],
        arena: str = ARENAS[0],
        app: str = "link",
        out: Path | None = None,
    ) -> Job:
        """Return the job; `configuration` defaults to the contents of the file named by `--config`.

        Raises:
            FerruleError: an option or the file is malformed.
        """
        from ferrule.running.configuration import assignments, read_configuration

        expected = "Backend=import or Backend=copy, such as GpuAcc=copy"
        transfers = assignments("--fallback", self.fallbacks, expected, "the fallback of backend")
        for backend, transfer in transfers.items():
            if transfer not in TRANSFERS:
                raise FerruleError(f"--fallback {backend}={transfer}: expected {expected}")
        assert self.backends is not None  # if --backends has no default, the command has checked it
        project = (configuration or read_configuration(self.config)).with_devices(self.devices)
        chosen = {name: getattr(self, name) for name in ("board", "toolchain", "optimization", "overlap", "goal")} | {
            "input_rows": self.input_rows or project.input_rows,
            "price": _price(self.prices),
            "self_test": self.self_test,
            "backends": [name.strip() for name in self.backends.split(",")],
            "fallback": not self.no_fallback,
            "hints": assignments("--hint", self.hints, "layer=Backend or layer=Backend/device", "the hint of layer"),
            "import_enabled": self.import_enabled or project.import_enabled,
            "fallback_transfers": transfers,
            "arena": arena,
            "platform": platform,
            "app": app,
            "out": out,
        }
        return project.job(chosen, self.backend_options)


def _price(texts: Sequence[str]) -> dict[str, float]:
    """Return `Job.price` of the options --price; FerruleError if one is malformed or given twice."""
    from ferrule.running.configuration import assignments

    expected = "ram=INSTRUCTIONS or flash=INSTRUCTIONS, per byte, such as ram=50"
    found = {}
    for name, text in assignments("--price", texts, expected, "the price of").items():
        try:
            found[name] = float(text)
        except ValueError as error:
            raise FerruleError(f"--price {name}={text}: expected {expected}") from error
    return found


_DIVISION = (
    several(
        "--hint",
        "LAYER=BACKEND[/DEVICE]",
        "The backend or device to try first for a layer, before the preferences.",
        "hints",
    ),
    several(
        "--device",
        "NAME=BACKEND",
        "Add a device, that is, an instance of a backend. A layer runs on the first device of its backend "
        "unless its hint names another.",
        "devices",
    ),
    several(
        "--backend-option",
        "BACKEND.NAME=VALUE",
        "Set an option of a backend, such as MyNpu.fast=true; `ferrule backends` lists the options. "
        "CpuAcc's num_threads and instructions, and GpuAcc's device, only affect runs on the host.",
        "backend_options",
    ),
    flag("--input-rows", "Let the firmware take its input row by row, as from a camera; with --goal memory."),
    option(
        "--goal",
        "The cost that is minimised where several kernels can run a layer: instructions (speed), instructions "
        "with hardly more flash or RAM (balanced), flash (size), RAM (memory), or planned cycles (time).",
        kind=GOALS,
        shown=GOALS[1],
    ),
    several(
        "--price",
        "ram|flash=INSTRUCTIONS",
        "What a byte is worth in instructions of one inference, instead of the goal's price "
        "(docs/running.md#goals): kernels take more RAM or weights if that saves more.",
        "prices",
    ),
    option(
        "--overlap",
        "Let devices work beside the core and one another where they can, for which their subgraphs may be "
        "divided, or end each layer before the next one begins, which takes the least memory.",
        kind=OVERLAPS,
        shown=OVERLAPS[0],
    ),
    flag(
        "--no-fallback",
        "Fail if a layer cannot run on the first backend (of its --hint, or of --backends), and list these "
        "layers with the reasons.",
    ),
    config_option,
)
_BUILD = (
    flag(
        "--self-test",
        "Bare metal, FreeRTOS, ThreadX, libraries: compare code, constants and weights at start-up with the "
        "CRC-32 of each, which a step after the link records (docs/running.md#self-test).",
    ),
    option(
        "--toolchain", "The compiler: zig or arm-none-eabi-gcc.", shown=TOOLCHAIN, shell_complete=completion.toolchains
    ),
    option(
        "-O --optimization",
        "The compiler's optimization level; by default that which measured best: Os for zig, O3 for arm-none-eabi-gcc.",
        kind=OPTIMIZATIONS,
    ),
)
_IMPORT = (
    flag(
        "--import",
        "On the host, let memory pass from one backend to another instead of being copied.",
        "import_enabled",
    ),
    several(
        "--fallback",
        "BACKEND=import|copy",
        "With --import: copy all tensors that pass to and from a backend, or import them, which is the default.",
        "fallbacks",
    ),
)


def job_options(*, build: bool = True, imports: bool = False) -> Option:
    """Add the options of a job, passed as one argument `options`.

    Without `build`, which is for commands that build nothing, --backends has no default. With `imports`, there are
    those for memory that passes between backends on the host.
    """
    backends = option(
        "--backends",
        "Backends in order of preference, separated by commas (see `ferrule backends`).",
        default="CpuAcc" if build else None,
        shell_complete=completion.backends,
    )
    more = (*(_BUILD if build else ()), *(_IMPORT if imports else ()))
    return collected("options", JobOptions, board_option, backends, *_DIVISION, *more)


def run_options(*more: Option, timeout: str = "") -> Option:
    """Add the options of a run, and more of them, passed as one argument `request`; `timeout` is more of its help."""
    return collected(
        "request",
        _request,
        option(
            "--engine",
            "The engine that runs the firmware: unicorn, qemu, renode (renode:cosimulation attaches device models "
            "through Renode's own co-simulation socket, renode:cosimulation-ticks also lets time pass for them), or "
            "serial for a real board behind a serial port.",
            shown=ENGINE,
            shell_complete=completion.engines,
        ),
        option("--port", "serial: the board's port (/dev/ttyUSB0, COM3), or a URL such as socket://host:port."),
        option("--baud", "serial: bits per second.", kind=POSITIVE, default=115_200),
        option(
            "--timeout",
            f"Time limit for one inference, in seconds in which the engine works or sleeps{timeout}.",
            "timeout_s",
            kind=click.FloatRange(min=0.001),
            default=60.0,
        ),
        flag(
            "--through-link",
            "unicorn and qemu: transfer inputs and outputs through the link, as on a real board, which takes the "
            "firmware more than a hundred instructions per byte; otherwise the engine accesses the memory directly.",
        ),
        option(
            "--clock",
            "unicorn: what time is counted in: instructions, one unit each, or cycles, by a model of the core, which "
            "gives milliseconds (docs/running.md#time).",
            kind=CLOCKS,
            shown="instructions, or cycles with --deadline, --rate or --battery",
        ),
        option(
            "--deadline",
            "Exit with 1 if an inference takes longer on the board, such as 50ms, with the measured error of the time "
            "counted against it; with 4 if it does not, but the error was not measured.",
            "deadline_s",
            metavar="TIME",
        ),
        option("--rate", "How often an inference begins, such as 10/s; it is a deadline, too.", metavar="RATE"),
        option(
            "--battery",
            "With --rate, on a board that states currents: what it runs from, such as 220mAh, to state how long it "
            "lasts.",
            metavar="CAPACITY",
        ),
        *more,
    )


def _request(**typed: Any) -> RunRequest:  # noqa: ANN401 click's types
    """Return the request of options that have the names of its fields, or of the fields of `EngineOptions`."""
    from ferrule.emulation import Clock, EngineOptions
    from ferrule.running import RunRequest
    from ferrule.timing.usage import parse_battery, parse_deadline, parse_rate

    names = [name for name in EngineOptions.__dataclass_fields__ if name in typed]
    options = EngineOptions(**{name: typed.pop(name) for name in names})
    if options.gdb is not None:
        typed["timeout_s"] = GDB_TIMEOUT_S
    read = {"clock": Clock, "deadline_s": parse_deadline, "rate": parse_rate, "battery": parse_battery}
    typed |= {name: parse(typed[name]) for name, parse in read.items() if typed.get(name) is not None}
    return RunRequest(**typed | {"options": options, "faults": _faults(typed.get("faults", ()))})


def _faults(texts: Sequence[str]) -> dict[str, Fault]:
    from ferrule.devices import parse_fault

    faults: dict[str, Fault] = {}
    for text in texts:
        device, fault = parse_fault(text)
        if device in faults:
            raise FerruleError(f"--fault {text}: device '{device}' has a fault already, and only one is allowed")
        faults[device] = fault
    return faults


dynamic_options = together(
    option(
        "--dynamic-path",
        "The folder to search for dynamic backends, instead of the default folders; it must be absolute.",
        kind=PATH,
    ),
    flag(
        "--isolate-dynamic-backends",
        "Run each dynamic backend in a process of its own: whatever it does there, this command gets an error.",
        "isolate",
    ),
)
