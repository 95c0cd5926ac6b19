# SPDX-License-Identifier: Apache-2.0
"""Pytest fixtures, registered as an entry point; no other module of Ferrule is imported before a test uses one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from ferrule.testing import Adapter, CmsisFakes, Fakes, ZephyrFakes
    from ferrule.testing.board_fixture import BoardFixture, KeptEngines


BOARD = "ferrule_board"
DEFAULT_BOARD = "mps2-an386"
DEFAULT_BAUD = 115_200
"""The values of the package, copied so that pytest starts without it; a test compares them."""
UNBALANCED = "ferrule_unbalanced"
BOARD_PROPERTY = "ferrule.board"
"""The property of a test in JUnit's file that names its board."""
_PLACE = (BOARD_PROPERTY, "ferrule.engine")
SERIAL = "serial"
EXCLUDED = "the test is for"
"""How the reason begins by which a test is skipped whose marks exclude the boards of the options."""
_failed = pytest.StashKey[bool]()
_starter: pytest.StashKey[BoardFixture] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose the boards and engines of the fixture `ferrule_board`."""
    group = parser.getgroup("ferrule", "firmware on boards (Ferrule)")
    group.addoption(
        "--ferrule-board",
        action="append",
        default=[],
        metavar="NAME",
        help=f"The board of the fixture {BOARD}, or the path of its folder; repeat it to run each test on several "
        f"boards.  [default: {DEFAULT_BOARD}]",
    )
    group.addoption(
        "--ferrule-engine",
        action="append",
        default=[],
        metavar="ENGINE",
        help="The engine that runs it: unicorn, qemu, renode or serial; may be repeated.  [default: "
        "unicorn, or else one that can run the board]",
    )
    group.addoption("--ferrule-port", metavar="PORT", help="serial: the board's port, or a URL.")
    group.addoption("--ferrule-baud", type=int, default=DEFAULT_BAUD, metavar="BAUD", help="serial: bits per second.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks of tests for certain boards, and of tests without a balance check."""
    config.addinivalue_line(
        "markers",
        f"{BOARD}(board, engine=...): the test is for this board, and for this engine if one is named; repeat the mark "
        "for several",
    )
    _check_names(config)
    config.pluginmanager.register(_BoardTests(config), f"{BOARD}_tests")
    config.addinivalue_line(
        "markers", f"{UNBALANCED}: the C under test may keep devices open, power and locks at the test's end"
    )


def _check_names(config: pytest.Config) -> None:
    """Raise UsageError if an option names a board or an engine that does not exist, or a port that nothing uses."""
    chosen = config.option
    for name in chosen.ferrule_board:
        _check_name("--ferrule-board", "board", name)
    for name in chosen.ferrule_engine:
        _check_name("--ferrule-engine", "engine", name)
    if chosen.ferrule_port is not None and SERIAL not in chosen.ferrule_engine:
        raise pytest.UsageError(
            f"--ferrule-port {chosen.ferrule_port}: only --ferrule-engine {SERIAL} uses a port, and without it no test "
            "runs on the board there"
        )


def _check_name(where: str, kind: str, name: str) -> None:
    """Raise UsageError if there is no board or engine of a name: no test would run on it."""
    from ferrule.boards import load_board
    from ferrule.emulation import engine
    from ferrule.errors import FerruleError

    try:
        (load_board if kind == "board" else engine)(name)
    except FerruleError as error:
        hint = f" ({error.hint})" if error.hint else ""
        raise pytest.UsageError(f"{where} {name}: {error}{hint}") from None


def _last_part(path: str) -> str:
    """Return the name of a board that is given by its folder."""
    return path.rstrip("/").rsplit("/", 1)[-1]


class _BoardTests:
    """Fails a session whose options name a board or an engine on which none of its tests for boards ran."""

    def __init__(self, config: pytest.Config) -> None:
        self._chosen = [*config.option.ferrule_board, *config.option.ferrule_engine]
        self._is_worker = hasattr(config, "workerinput")
        self._skipped: set[str] = set()
        self._ran: set[str] = set()
        self._idle = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the tests that ran on a board, and those that were to and did not."""
        if report.skipped:
            self._skipped.add(report.nodeid)
            self._idle += isinstance(report.longrepr, tuple) and EXCLUDED in report.longrepr[2]
        elif report.when == "teardown" and any(name == BOARD_PROPERTY for name, _ in report.user_properties):
            if report.nodeid in self._skipped:
                self._idle += 1
            else:
                self._ran |= {str(value) for name, value in report.user_properties if name in _PLACE}

    @property
    def _lacking(self) -> list[str]:
        """The boards and engines that are named and have no test, in a session with tests for boards."""
        if self._is_worker or not (self._idle or self._ran):
            return []
        return [name for name in self._chosen if name not in self._ran and _last_part(name) not in self._ran]

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Replace a success by the exit status of a session without tests."""
        if self._lacking and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:  # noqa: ANN401 a private class of pytest
        """State why the session has failed."""
        if self._lacking:
            text = f"no test ran on {', '.join(self._lacking)}: {self._idle} were skipped, nothing was compared"
            terminalreporter.write_line(text, red=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note that a test has failed, so that no balance check hides the reason."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    if report.failed:
        item.stash[_failed] = True
        starter = item.stash.get(_starter, None)
        if starter is not None and report.when == "call" and starter.started:
            report.sections.append((f"{BOARD}: {starter.name} by {starter.engine}", starter.state_text()))


def _pairs(metafunc: pytest.Metafunc) -> list[tuple[str | None, str | None]]:
    """Return the boards and engines that the test's marks name, the nearest first; None for those they leave open."""
    found: list[tuple[str | None, str | None]] = []
    for mark in metafunc.definition.iter_markers(BOARD):
        unknown = set(mark.kwargs) - {"engine"}
        if len(mark.args) > 1 or unknown or not (mark.args or mark.kwargs):
            raise pytest.UsageError(
                f"{metafunc.definition.nodeid}: expected @pytest.mark.{BOARD}(board), (board, engine=...) or "
                f"(engine=...)"
            )
        pair = (mark.args[0] if mark.args else None, mark.kwargs.get("engine"))
        for kind, name in zip(("board", "engine"), pair, strict=True):
            if name is not None:
                _check_name(f"{metafunc.definition.nodeid}: the mark {BOARD} names the {kind}", kind, name)
        if pair not in found:
            found.append(pair)
    return found


def _choices(metafunc: pytest.Metafunc) -> tuple[list[tuple[str, str]], str]:
    """Return the boards and engines of a test, or none and the reason why its marks exclude those of the options."""
    from ferrule.emulation import fitting_engine

    options = metafunc.config.option
    boards, engines = list(dict.fromkeys(options.ferrule_board)), list(dict.fromkeys(options.ferrule_engine))
    marked = _pairs(metafunc) or [(None, None)]
    found: list[tuple[str, str]] = []
    for board, engine in marked:
        for each in [board] if board is not None else boards or [DEFAULT_BOARD]:
            for by in [engine] if engine is not None else engines or [fitting_engine(each)]:
                wanted = (not boards or each in boards) and (not engines or by in engines)
                if wanted and (each, by) not in found:
                    found.append((each, by))
    names = ", ".join(f"{board or 'any board'} by {engine or 'any engine'}" for board, engine in marked)
    return found, f"{EXCLUDED} {names}, and the options name {', '.join([*boards, *engines])}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that uses the fixture `ferrule_board` on each of its boards and engines."""
    if BOARD not in metafunc.fixturenames:
        return
    choices, reason = _choices(metafunc)
    parameters = (
        [pytest.param(pair, id="-".join(map(_last_part, pair))) for pair in choices]
        if choices
        else [pytest.param(None, id="excluded", marks=pytest.mark.skip(reason=reason))]
    )
    metafunc.parametrize(BOARD, parameters, indirect=True)


@pytest.fixture(scope="session")
def _ferrule_engines() -> Iterator[KeptEngines]:
    from ferrule.testing.board_fixture import KeptEngines

    engines = KeptEngines()
    yield engines
    engines.end()


@pytest.fixture
def ferrule_board(request: pytest.FixtureRequest, _ferrule_engines: KeptEngines) -> Iterator[BoardFixture]:
    """Return a function that starts firmware on the test's board; the board and its instructions go into JUnit's file.

    Options (--ferrule-board, --ferrule-engine) and marks (`@pytest.mark.ferrule_board("mps2-an386", engine="qemu")`)
    choose the boards and engines. A process that an engine keeps, such as Renode's, serves all tests.
    """
    from ferrule.emulation import EngineOptions
    from ferrule.testing.board_fixture import BoardFixture

    board, engine = request.param
    chosen = request.config.option
    options = EngineOptions(port=chosen.ferrule_port, baud=chosen.ferrule_baud, semihosting=engine == "unicorn")
    starter = BoardFixture(board, engine, _ferrule_engines, options)
    request.node.stash[_starter] = starter
    try:
        yield starter
    finally:
        starter.close()
        # not by record_property, which warns where the family of JUnit's file is the default
        request.node.user_properties += [(BOARD_PROPERTY, starter.name), ("ferrule.engine", starter.engine)]
        if starter.instructions is not None:
            request.node.user_properties.append(("ferrule.instructions", starter.instructions))


class AdapterBuilder(Protocol):
    """The fixture `ferrule_adapter`: `build_adapter`, with one build per session for equal arguments."""

    def __call__(self, platform: str, **options: Any) -> Adapter[Any]:  # noqa: ANN401 those of build_adapter
        """Return the adapter after a reset."""
        ...


@pytest.fixture(scope="session")
def _ferrule_adapters() -> dict[str, Adapter[Any]]:
    return {}


@pytest.fixture
def _ferrule_building(
    _ferrule_adapters: dict[str, Adapter[Any]], request: pytest.FixtureRequest
) -> Iterator[Callable[..., Adapter[Any]]]:
    """Yield a function that builds adapters, unless the session has them already, and check them at the test's end."""
    used: list[Adapter[Any]] = []

    def built(build: Callable[..., Adapter[Any]], *arguments: object, **options: object) -> Adapter[Any]:
        # as text: arguments such as lists and dictionaries have no hash
        key = repr((build.__name__, arguments, sorted(options.items())))
        if key not in _ferrule_adapters:
            _ferrule_adapters[key] = build(*arguments, **options)
        _ferrule_adapters[key].reset()
        used.append(_ferrule_adapters[key])
        return used[-1]

    yield built
    for adapter in used:
        adapter.fakes.check()
    if request.node.get_closest_marker(UNBALANCED) is None and _failed not in request.node.stash:
        for adapter in used:
            adapter.fakes.check_balance()


@pytest.fixture
def ferrule_adapter(_ferrule_building: Callable[..., Adapter[Any]]) -> AdapterBuilder:
    """Return `build_adapter`; at the test's end, a misuse that no call raised and everything still held fail it."""
    from ferrule.testing import build_adapter

    return partial(_ferrule_building, build_adapter)


@pytest.fixture
def ferrule_driver(_ferrule_building: Callable[..., Adapter[Any]]) -> Callable[..., Adapter[Fakes]]:
    """Return `build_driver`; at the test's end, a misuse that no call raised and everything still held fail it."""
    from ferrule.testing import build_driver

    return partial(_ferrule_building, build_driver)


@pytest.fixture
def zephyr_adapter(ferrule_adapter: AdapterBuilder) -> Adapter[ZephyrFakes]:
    """Return Ferrule's adapter for Zephyr."""
    return ferrule_adapter("zephyr")


@pytest.fixture
def cmsis_adapter(ferrule_adapter: AdapterBuilder) -> Adapter[CmsisFakes]:
    """Return Ferrule's adapter for CMSIS."""
    return ferrule_adapter("cmsis")


@pytest.fixture
def bare_metal_adapter(ferrule_adapter: AdapterBuilder) -> Adapter[Fakes]:
    """Return Ferrule's adapter for bare metal."""
    return ferrule_adapter("bare_metal")
