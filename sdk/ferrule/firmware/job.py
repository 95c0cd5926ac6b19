# SPDX-License-Identifier: Apache-2.0
"""The job: the user's choices for a firmware, in one value that every step reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TypedDict

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends import Device
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.registry import BackendRegistry, default_registry
from ferrule.backends.target import PRICES, Face, Goal, Price
from ferrule.boards import Board, load_board
from ferrule.errors import FerruleError, unknown_name
from ferrule.firmware.platforms import DEFAULT_PLATFORM
from ferrule.firmware.toolchain import DEFAULT_TOOLCHAIN, toolchain
from ferrule.interface import name_of
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize

DEFAULT_BOARD = "mps2-an386"
SEPARATE, SHARED = "separate", "shared"
"""The values of `Job.arena`."""
OVERLAPS = ("on", "off")
GOALS = tuple(str(goal) for goal in Goal)
PRICED = tuple(each.name for each in fields(Price))
"""The keys of `Job.price`."""


@frozen
class Job:
    """The choices for compiling a network to firmware; every field has a usable default.

    Lists are accepted in place of tuples. Names are checked by the step that uses them.
    """

    board: str | Path | Board = DEFAULT_BOARD
    """A board's name, the path of its folder, or the board itself."""
    toolchain: str = DEFAULT_TOOLCHAIN
    backends: Sequence[str] = ("CpuAcc",)
    """Backends in order of preference; each layer is assigned to the first that supports it."""
    devices: Sequence[Device] = ()
    """The instances of backends; a backend without an instance here has one device with the backend's name."""
    fallback: bool = True
    """Whether a layer that its first backend cannot have goes to the next, with a message; otherwise it is an error."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """The backend to try before the preferences, by layer, as "Backend" or "Backend/device"."""
    model_options: Mapping[str, ModelOptions] = field(default_factory=dict)
    """Options by backend."""
    import_enabled: bool = False
    """Whether memory may pass from one backend to another on the host, instead of being copied."""
    fallback_transfers: Mapping[str, str] = field(default_factory=dict)
    """By backend: "copy" to copy all tensors that pass to and from it on the host, or "import", the default."""
    overlap: str = "on"
    """"on": devices that can do so work beside the core and one another, for which subgraphs may be divided and the
    layers are ordered; "off": each layer ends before the next one begins, which takes the least memory."""
    goal: str = "balanced"
    """The cost that is minimised where several kernels can run a layer: "speed" (instructions), "balanced"
    (instructions, with hardly more flash or RAM), "size" (flash), "memory" (RAM) or "time" (planned cycles, where the
    core has a table of them, and otherwise instructions)."""
    price: Mapping[str, float] = field(default_factory=dict)
    """What a byte is worth in instructions of one inference, with the goal "time" in cycles, instead of the goal's
    price: `ram` and `flash`, of which either may be left out. More is saved for a byte if it is worth less."""
    input_rows: bool = False
    """Whether the firmware takes its only input row by row, as from a camera, by `ferrule_<model>_input_rows`; the
    goal is then "memory"."""
    optimization: str | None = None
    """The compiler's optimization level: O2, O3 or Os; None for the best of the toolchain, see `level`."""
    debug: bool = False
    """Whether a bare-metal build has debug information; the code that is loaded onto the board is the same."""
    arena: str = SEPARATE
    """Whether each of several models has a workspace of its own, "separate", or all have one with a lock, "shared"."""
    platform: str = DEFAULT_PLATFORM
    """The platform of the project: bare-metal, cmsis, freertos, threadx or zephyr; or for a library: library, and
    library-bare-metal, library-cmsis, library-freertos or library-threadx for one with an adapter of the device API."""
    app: str = "link"
    """What a bare-metal firmware does: "link" serves Ferrule's link, "calibration" does so with micro-programs besides
    the model, for `ferrule calibrate`, and "mlperf-tiny" serves the runner of MLPerf Tiny, for the benchmark of the
    model's shapes or, as "mlperf-tiny:kws01", for a named one."""
    self_test: bool = False
    """Whether a firmware with Ferrule's own start-up compares its code, constants and weights at start-up with the
    CRC-32 of each, which a step after the link records; a library has the function for it."""
    out: str | Path | None = None
    """The folder of the project; None for a temporary folder that is removed together with its Firmware."""
    registry: BackendRegistry | None = None
    """The registry of backends; None for all installed backends."""

    def __post_init__(self) -> None:
        for name in ("backends", "devices"):
            value = getattr(self, name)
            if isinstance(value, (str, Device)):
                raise FerruleError(f"{name} is {value!r}, expected a list", hint=f"write {name}=[{value!r}]")
            object.__setattr__(self, name, tuple(value))
        for name, known in (("arena", (SEPARATE, SHARED)), ("overlap", OVERLAPS), ("goal", GOALS)):
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known, where="in a Job")
        if self.input_rows and (self.goal != Goal.MEMORY or self.arena == SHARED):
            raise FerruleError(
                f"{name_of('input_rows')} with goal {self.goal!r} and arena {self.arena!r}, expected the goal 'memory' "
                "and an arena of its own",
                hint="rows wait in the workspace between calls; only layers that run row by row can take them",
            )
        for name in ("hints", "model_options", "fallback_transfers", "price"):
            object.__setattr__(self, name, dict(getattr(self, name) or {}))
        for name, value in self.price.items():
            if name not in PRICED:
                raise unknown_name("price", name, PRICED, where="in a Job")
            if not isinstance(value, (int, float)) or not 0 <= value < math.inf:  # type: ignore[redundant-expr]
                raise FerruleError(f"the price of {name} is {value!r}, expected instructions per byte, at least 0")

    @override
    def __repr__(self) -> str:
        board = self.board.name if isinstance(self.board, Board) else str(self.board)
        said = [f"board={board!r}", f"toolchain={self.toolchain!r}", f"backends={', '.join(self.backends)!r}"]
        said += [f"{len(getattr(self, name))} {name}" for name in ("devices", "hints") if getattr(self, name)]
        said += self._unusual("fallback")
        if self.model_options:
            said.append(f"options of {', '.join(self.model_options)}")
        said += self._unusual("import_enabled", "overlap", "goal")
        if self.price:
            said.append(f"price={self.price!r}")
        said += self._unusual("input_rows", "optimization", "debug")
        said.append(f"platform={self.platform!r}")
        said += self._unusual("app", "self_test")
        if self.out is not None:
            said.append(f"out={str(self.out)!r}")
        return f"Job({', '.join(said)})"

    def _unusual(self, *names: str) -> list[str]:
        """Return those of some fields that have another value than by default."""
        usual = {each.name: each.default for each in fields(self)}
        return [f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) != usual[name]]

    @property
    def level(self) -> str:
        """The optimization level: the one given, or the better of O3 and Os for the toolchain, as measured.

        A project that another build system compiles gets O3.
        """
        if self.optimization is not None:
            return self.optimization
        return toolchain(self.toolchain).usual_optimization if self.platform == DEFAULT_PLATFORM else "O3"

    def load_board(self) -> Board:
        """Return the board; FerruleError if there is no board of that name."""
        return self.board if isinstance(self.board, Board) else load_board(self.board)

    def backend_source(self) -> BackendRegistry:
        """Return the registry of backends."""
        return self.registry or default_registry()

    def optimizer_options(self, face: Face) -> OptimizerOptions:
        """Return the optimizer's options for a face; FerruleError if it is FIRMWARE and the board does not exist."""
        board = self.load_board() if face is Face.FIRMWARE else None
        return OptimizerOptions(
            face=face,
            fallback=self.fallback,
            hints=self.hints,
            devices=tuple(self.devices),
            model_options=self.model_options,
            import_enabled=self.import_enabled,
            fallback_transfers=self.fallback_transfers,
            core=None if board is None else board.cpu.features,
            memories=() if board is None else board.memories,
            goal=Goal(self.goal),
            own_price=replace(PRICES[Goal(self.goal)], **self.price) if self.price else None,
            pace=None if board is None else board.pace,
            input_rows=self.input_rows,
            overlap=self.overlap == "on",
        )


class JobKeywords(TypedDict, total=False):
    """The fields of a Job as keyword arguments."""

    board: str | Path | Board
    toolchain: str
    backends: Sequence[str]
    devices: Sequence[Device]
    fallback: bool
    hints: Mapping[str, str] | None
    model_options: Mapping[str, ModelOptions] | None
    import_enabled: bool
    fallback_transfers: Mapping[str, str] | None
    overlap: str
    goal: str
    price: Mapping[str, float]
    input_rows: bool
    optimization: str | None
    debug: bool
    arena: str
    platform: str
    app: str
    self_test: bool
    out: str | Path | None
    registry: BackendRegistry | None


def job_from(job: Job | None, keywords: JobKeywords) -> Job:
    """Return the given job, or one made from the keywords.

    Raises:
        FerruleError: both are given, a keyword is not a field of Job, or `job` is of another type.
    """
    known = [each.name for each in fields(Job)]
    for name in keywords:
        if name not in known:
            raise unknown_name("field", name, known, where="in a Job")
    if job is None:
        return Job(**keywords)  # type: ignore[arg-type]
    if not isinstance(job, Job):
        raise FerruleError(
            f"the job is of type {type(job).__name__}, expected a ferrule.Job",
            hint='give keywords, such as board="mps2-an386"',
        )
    if keywords:
        raise FerruleError(
            f"both a job and keywords are given: {', '.join(keywords)}",
            hint="give either; dataclasses.replace(job, ...) changes a job",
        )
    return job


def divide_all(networks: Sequence[Network], job: Job) -> tuple[OptimizedNetwork, ...]:
    """Return the networks of one firmware divided over the job's backends; a hint is for all that have its layer.

    Raises:
        UnsupportedError, FerruleError: as `divide`, and no network has the layer of a hint.
    """
    layers = [{layer.name for layer in network.layers} for network in networks]
    for name in job.hints:
        if len(networks) > 1 and not any(name in known for known in layers):
            raise FerruleError(f"a hint names the layer '{name}', which none of the {len(networks)} models has")
    own = [{name: hint for name, hint in job.hints.items() if len(networks) == 1 or name in known} for known in layers]
    return tuple(divide(network, replace(job, hints=hints)) for network, hints in zip(networks, own, strict=True))


def divide(network: Network, job: Job | None = None, *, face: Face = Face.FIRMWARE) -> OptimizedNetwork:
    """Return the network divided over the job's backends, for firmware or for the host.

    Raises:
        UnsupportedError: no backend supports some layer; the message gives every backend's reason.
        FerruleError: the job names a backend, device or layer that does not exist, or no backend has that face.
    """
    wanted = job or Job()
    network.validate()
    return optimize(network, wanted.backends, wanted.backend_source(), wanted.optimizer_options(face))
