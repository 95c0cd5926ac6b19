# SPDX-License-Identifier: Apache-2.0
"""The fixture `ferrule_board` in an inner pytest: its choices, what it reports, and the engines that it keeps."""

from __future__ import annotations

import importlib.metadata
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from board_programs import talker
from needs import require_module

from ferrule.emulation import EngineError, EngineOptions, engine
from ferrule.emulation.engine import Engine
from ferrule.firmware import DEFAULT_BOARD
from ferrule.link import DEFAULT_BAUD
from ferrule.testing import pytest_plugin
from ferrule.testing.board_fixture import BoardFixture, KeptEngines

pytest_plugins = ["pytester"]
PLUGIN = "ferrule.testing.pytest_plugin"


@pytest.fixture(autouse=True)
def _tools() -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")


def inner(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    """Run a test module in an inner pytest."""
    pytester.makepyfile(text)
    registered = any(each.name == "ferrule" for each in importlib.metadata.entry_points(group="pytest11"))
    return pytester.runpytest_inprocess("-v", *([] if registered else ["-p", PLUGIN]), *options)


def test_the_copied_values_are_those_of_the_package() -> None:
    assert pytest_plugin.DEFAULT_BOARD == DEFAULT_BOARD
    assert pytest_plugin.DEFAULT_BAUD == DEFAULT_BAUD


@pytest.mark.sentinel
def test_choices_by_mark_and_option(pytester: pytest.Pytester) -> None:
    text = """
        import pytest
        def test_any(ferrule_board):
            print("RAN", "any", ferrule_board.name, ferrule_board.engine)
        @pytest.mark.ferrule_board("mps2-an385", engine="qemu")
        @pytest.mark.ferrule_board(engine="unicorn")
        def test_marked(ferrule_board):
            print("RAN", "marked", ferrule_board.name, ferrule_board.engine)
    """

    def ran(*options: str) -> list[str]:
        result = inner(pytester, text, "-s", *options)
        return sorted(" ".join(line.split("RAN ")[1].split()[:3]) for line in result.outlines if "RAN " in line)

    assert ran() == ["any mps2-an386 unicorn", "marked mps2-an385 qemu", "marked mps2-an386 unicorn"]
    assert ran("--ferrule-board", "mps2-an385", "--ferrule-board", "mps2-an386", "--ferrule-engine", "unicorn") == [
        "any mps2-an385 unicorn",
        "any mps2-an386 unicorn",
        "marked mps2-an385 unicorn",
        "marked mps2-an386 unicorn",
    ]
    excluded = inner(pytester, text, "-rs", "--ferrule-engine", "renode")
    excluded.assert_outcomes(passed=1, skipped=1)
    assert excluded.ret == pytest.ExitCode.OK
    excluded.stdout.fnmatch_lines(
        ["*the test is for any board by unicorn, mps2-an385 by qemu, and the options name renode*"]
    )


MARKED = """
    import pytest
    @pytest.mark.ferrule_board("mps2-an386", engine="renode")
    def test_marked(ferrule_board):
        assert False
    def test_without_a_board():
        pass
"""


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("board", "mps2-an385x", "did you mean mps2-an385"),
        ("engine", "unicron", "unicorn"),
        # the tests would run on an emulator, and nothing on the board behind the port
        ("port", "/dev/ttyUSB0", "only --ferrule-engine serial uses a port"),
    ],
)
def test_an_option_without_an_effect_is_an_error(pytester: pytest.Pytester, option: str, name: str, said: str) -> None:
    result = inner(pytester, MARKED, f"--ferrule-{option}", name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--ferrule-{option} {name}: *{said}*"])


@pytest.mark.parametrize("options", [("--ferrule-board", "mps2-an385"), ("--ferrule-engine", "unicorn")])
def test_a_session_fails_whose_boards_no_test_is_for(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    result = inner(pytester, MARKED, *options)
    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines([f"no test ran on {options[1]}: 1 were skipped, nothing was compared"])
    without = inner(pytester, MARKED, *options, "-k", "without")
    assert without.ret == pytest.ExitCode.OK


def test_an_unknown_name_in_a_mark_is_an_error(pytester: pytest.Pytester) -> None:
    """With another board in the options, the test would be left out as one for another board."""
    text = """
        import pytest
        @pytest.mark.ferrule_board("mps2-an385x")
        def test_marked(ferrule_board): ...
    """
    for options in ((), ("--ferrule-board", "mps2-an386")):
        result = inner(pytester, text, *options)
        assert result.ret == pytest.ExitCode.INTERRUPTED
        result.stdout.fnmatch_lines(["*test_marked: the mark ferrule_board names the board mps2-an385x: *"])


def test_a_session_fails_if_one_of_its_boards_has_no_test(pytester: pytest.Pytester) -> None:
    text = """
        import pytest
        @pytest.mark.ferrule_board("mps2-an386")
        def test_marked(ferrule_board): ...
    """
    result = inner(pytester, text, "--ferrule-board", "mps2-an386", "--ferrule-board", "mps2-an385")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["no test ran on mps2-an385: 0 were skipped, nothing was compared"])


def test_a_session_fails_whose_only_test_on_a_board_skips_itself(pytester: pytest.Pytester) -> None:
    text = """
        import pytest
        def test_any(ferrule_board):
            pytest.skip("not today")
    """
    assert inner(pytester, text, "--ferrule-board", "mps2-an385").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert inner(pytester, text).ret == pytest.ExitCode.OK


@pytest.mark.cc
@pytest.mark.emu
def test_what_a_failure_and_junit_report(pytester: pytest.Pytester, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    result = inner(
        pytester,
        f"""
        def test_fails(ferrule_board):
            board = ferrule_board({str(talker())!r})
            board.console.expect("ready")
            assert board.word("lines") == 9
        """,
        "--junitxml",
        str(junit),
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ferrule_board: mps2-an386 by unicorn*", "  | ready", "*pc 0x0000_*main*"])
    properties = {each.get("name"): each.get("value") for each in ET.parse(junit).iter("property")}  # noqa: S314 our own file
    assert properties["ferrule.board"] == "mps2-an386"
    assert properties["ferrule.engine"] == "unicorn"
    assert int(properties["ferrule.instructions"] or 0) > 0


@pytest.mark.nightly
def test_a_wrong_mark(pytester: pytest.Pytester) -> None:
    text = """
        import pytest
        @pytest.mark.ferrule_board(bord="x")
        def test_wrong_mark(ferrule_board): ...
    """
    inner(pytester, text).stdout.fnmatch_lines(["*expected @pytest.mark.ferrule_board(board)*"])


class Counted(Engine):
    """An engine that notes how it is used and starts unicorn."""

    name = "unicorn"

    def __init__(self) -> None:
        self.events: list[str] = []

    def kept(self) -> Engine:
        self.events.append("kept")
        return self

    def end(self) -> None:
        self.events.append("end")

    def __getattr__(self, name: str) -> object:
        return getattr(engine("unicorn"), name)

    def missing(self) -> None:
        return None

    def refuses(self, *_: object) -> None:
        return None

    def start(self, machine: object) -> object:  # type: ignore[override]
        self.events.append("start")
        return engine("unicorn").start(machine)  # type: ignore[arg-type]


@pytest.mark.cc
@pytest.mark.emu
def test_one_engine_serves_one_board_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted()
    monkeypatch.setattr("ferrule.testing.board_fixture.engine_named", lambda _: counted)
    engines = KeptEngines()
    for _ in range(2):
        starter = BoardFixture("mps2-an386", "unicorn", engines, EngineOptions(semihosting=True))
        board = starter(talker())
        board.console.expect("ready")
        starter.close()
        assert board.is_closed
        with pytest.raises(EngineError):
            board.counters()
    engines.end()
    assert counted.events == ["kept", "start", "start", "end"]
