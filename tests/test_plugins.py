# SPDX-License-Identifier: Apache-2.0
"""The plugins of tests/support: the report on tests not run, the order of tests, and Hypothesis."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import children
import pytest

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[1]
SKIPS = {"skip", "skipif", "importorskip", "skipIf", "skipUnless", "SkipTest"}
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs pytest with the plugins on a test file; with `apart`, in a separate process."""
    monkeypatch.setenv("PYTHONPATH", children.environment(ROOT / "tests" / "support")["PYTHONPATH"])
    monkeypatch.delenv("FERRULE_REQUIRE_ALL", raising=False)
    monkeypatch.delenv("RENODE", raising=False)

    def function(tests: str, *options: str, apart: bool = False) -> pytest.RunResult:
        # a process has only one Hypothesis profile
        plugins = (ROOT / "conftest.py").read_text(encoding="utf-8")
        pytester.makeconftest(plugins if apart else plugins.replace('"hypothesis_profile", ', ""))
        pytester.makepyfile(test_it=tests)
        start = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
        return start("-p", "no:cacheprovider", *options)

    return function


LACKING = """
import pytest
from needs import lacking, require_variable

@pytest.fixture(scope="module")
def nothing():
    lacking("gcc", "apt-get install gcc")

@pytest.mark.parametrize("number", range(3))
def test_tool(nothing, number):
    pass

def test_rare():
    require_variable("RENODE")

def test_rare_too():
    lacking("a processor with [neon]", "run the tests on one", rare=True)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_the_table_names_what_was_not_run(run: Run, workers: int) -> None:
    result = run(LACKING, *(("-n", str(workers)) if workers else ()), apart=workers > 0)
    result.assert_outcomes(skipped=5)
    result.stdout.fnmatch_lines(
        [
            "*= 5 tests were not run =*",
            "tests *missing *how to get it*",
            "    1 *RENODE *set RENODE to the program of Renode*",
            "    1 *a processor with [[]neon[]] *run the tests on one",
            "    3 *gcc *apt-get install gcc",
        ]
    )


def test_what_the_gate_installs_must_not_lack(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_REQUIRE_ALL", "1")
    result = run(LACKING)
    result.assert_outcomes(skipped=2, errors=3)
    result.stdout.fnmatch_lines(["*gcc is missing: apt-get install gcc*"])


@pytest.mark.parametrize("required", [False, True])
def test_the_families_skip_where_a_tool_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch, required: bool) -> None:
    if required:
        monkeypatch.setenv("FERRULE_REQUIRE_ALL", "1")
    result = run("""
        import pytest
        from ferrule.errors import MissingToolError

        def test_family():
            try:
                raise MissingToolError("there is no board", hint="buy one")
            except MissingToolError as error:
                pytest.skip(f"{error}; {error.hint}")
    """)
    result.assert_outcomes(**{"failed" if required else "skipped": 1})
    result.stdout.fnmatch_lines(["*there is no board*buy one*"])


@pytest.mark.parametrize(
    ("outcome", "tests"),
    [
        ("failed", "import pytest\ndef test_it():\n    pytest.skip('no time')\n"),
        ("errors", "import pytest\n@pytest.mark.skip(reason='no time')\ndef test_it():\n    pass\n"),
        ("errors", "import pytest\n@pytest.mark.skipif('1', reason='no time')\ndef test_it():\n    pass\n"),
        ("errors", "import pytest\n@pytest.fixture\ndef it():\n    pytest.skip('no time')\ndef test_it(it): pass\n"),
        ("errors", "import pytest\npytest.skip('no time', allow_module_level=True)\n"),
    ],
    ids=["call", "mark", "condition", "fixture", "module"],
)
def test_any_other_skip_is_an_error(run: Run, outcome: str, tests: str) -> None:
    result = run(tests)
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(["*skipped with 'no time': a skip goes through needs.lacking*"])


def test_what_is_expected_to_fail_is_no_skip(run: Run) -> None:
    run("import pytest\n@pytest.mark.xfail\ndef test_it():\n    assert False\n").assert_outcomes(xfailed=1)


def skips(path: Path) -> Iterator[str]:
    """Yield the places in a file that skip a test without `needs.lacking`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in SKIPS:
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_all_skips_go_through_lacking() -> None:
    folders = [ROOT / "tests", ROOT / "examples", *ROOT.glob("sdk/ferrule/backends/*/tests")]
    found = [place for folder in folders for path in sorted(folder.rglob("*.py")) for place in skips(path)]
    own = {
        "tests/support/needs.py",
        "tests/support/not_run.py",
    }
    assert [place for place in found if place.partition(":")[0] not in own] == []
    assert {place.partition(":")[0] for place in found} == own


FILES = "def test_a():\n    pass\ndef test_b():\n    pass\ndef test_c():\n    pass\n"


def ran(result: pytest.RunResult) -> list[str]:
    """Return the tests in the order in which they ran."""
    return re.findall(r"(test_\w+\.py::test_\w+) PASSED", result.stdout.str())


def test_the_order_of_tests(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_two=FILES, test_three=FILES)
    plain = ran(run(FILES, "-v"))
    assert len(plain) == 9
    assert ran(run(FILES, "-v", "--order=reverse")) == plain[::-1]
    two, three, it = plain[:3], plain[3:6], plain[6:]
    both = (
        [name for tests in (two, three, it) for name in tests[:1]],
        [n for tests in (two, three, it) for n in tests[1:]],
    )
    assert ran(run(FILES, "-v", "--order=twice")) == [*both[0], *both[1]]
    first = run(FILES, "-v", "--order=random:1")
    assert "--order=random:1" in first.stdout.str()
    assert sorted(ran(first)) == sorted(plain)
    assert ran(first) == ran(run(FILES, "-v", "--order=random:1"))
    assert len({tuple(ran(run(FILES, "-v", f"--order=random:{seed}"))) for seed in range(2, 5)} - {tuple(plain)}) > 1
    files = [name.partition("::")[0] for name in ran(first)]
    assert len([at for at in range(1, 9) if files[at] != files[at - 1]]) == 2  # the files are not interleaved


IMPORTED = """
import os
from pathlib import Path

with Path(os.environ["PYTEST_XDIST_WORKER"]).open("a", encoding="utf-8") as file:
    file.write(f"{__name__.rpartition('.')[2]}\\n")
"""


def test_workers_share_the_order_but_import_in_opposite_ones(run: Run, pytester: pytest.Pytester) -> None:
    for name in ("test_first", "folder/test_second", "folder/test_third"):
        pytester.makepyfile(**{name: IMPORTED + FILES})
    result = run(IMPORTED + FILES, "--order=random", "-n", "2", apart=True)
    result.assert_outcomes(passed=12)  # xdist would refuse different orders of the tests
    assert re.search(r"order: --order=random:\d+", result.stdout.str())
    orders = [(pytester.path / worker).read_text(encoding="utf-8").split() for worker in ("gw0", "gw1")]
    assert orders[0] == ["test_second", "test_third", "test_first", "test_it"]
    assert orders[1] == orders[0][::-1]


@pytest.mark.parametrize("order", ["sideways", "random:x", "reverse:1", "random:"])
def test_an_order_that_is_not_known(run: Run, order: str) -> None:
    result = run(FILES, f"--order={order}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--order {order} is not known: choose reverse, twice, random or random:SEED"])


DRAWING = """
from hypothesis import given, settings, strategies as st

def test_settings():
    assert settings.default.deadline is None

@settings(max_examples=5)
@given(st.integers(0, 1 << 64))
def test_draws(number):
    print("drew", number)
"""


def test_examples_are_fixed_but_where_others_are_wanted(run: Run) -> None:
    def drawn(*options: str) -> list[str]:
        result = run(DRAWING, "-s", *options, apart=True)
        result.assert_outcomes(passed=2)
        return re.findall(r"drew (\d+)", result.stdout.str())

    fixed = drawn()
    assert fixed == drawn()
    assert drawn("--random-seeds") != fixed


def test_a_test_that_hangs_fails_and_dumps_its_stacks(run: Run, pytester: pytest.Pytester) -> None:
    settings = re.findall(r"^(?:timeout|faulthandler)\w* = (\S+)$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert settings == ["600", '"signal"', "1800", "true"]
    result = run(
        "import threading\ndef test_hangs():\n    threading.Event().wait()\ndef test_next():\n    pass\n",
        *("--timeout=1", "--timeout-method=signal"),
        apart=True,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*threading.Event().wait()*", "*Timeout*1.0s*"])
