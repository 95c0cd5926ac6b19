# SPDX-License-Identifier: Apache-2.0
"""Messages name the caller's own interface: options on the command line, keywords in Python."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import numpy as np
import pytest
import small_networks
from hypothesis import given
from hypothesis import strategies as st

import ferrule
from ferrule.cli.main import _COMMANDS, cli
from ferrule.errors import FerruleError, IterationLimitError, visible
from ferrule.interface import MARKS, command_line, either, is_command_line, name_of, option, spell_for, spelled

PACKAGE = Path(ferrule.__file__).parent
ONLY_COMMANDS = {
    "cli": "the command line itself",
    "evaluation/sweep": "there are sweeps on the command line only",
    "running/configuration.py": "options as the user typed them",
    "emulation/serving.py": "ferrule serve-accelerator",
    "link/pty.py": "ferrule serve-board and serve-accelerator",
}
"""Where messages may name options outright, and why nobody reads them from Python."""
OTHERS = ("recognition", "formats/onnx", "testing", "runtime")
"""What names the options of exporters, and what is used from Python only."""
FOR_SHELLS = {
    "emulation/renode/project_files.py": "a comment of a script, for a user of Renode's monitor",
}
"""What writes commands into files, which are read without Python."""
OPTION = re.compile(r"(?<![\w`-])--[a-z][a-z-]*|`ferrule [a-z-]+ [^`]*--")
KEYWORD = re.compile(
    r"\b(?!keras|unroll)[a-z_]+=(?:True|False|\.\.\.)|\bferrule\.[a-z_]+\(|\bload\(|\b(?:TensorInfo|Network|Firmware|Runtime)\.[a-z_]+"
)
MESSAGES = re.compile(r".*Error|unknown_name|wrong|lacking")


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts below a node, without those of the mechanism."""
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in {"either", "option"}:
        return
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree
    for child in ast.iter_child_nodes(tree):
        yield from texts(child)


def messages(path: Path) -> Iterator[ast.Constant]:
    """Yield the texts of errors and hints in a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if MESSAGES.fullmatch(name):
                yield from texts(node)
            case ast.keyword(arg="hint", value=value):
                yield from texts(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.lower().endswith("hint"):
                yield from texts(value)


def modules() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if "/tests/" not in name:
            yield name


def test_messages_name_options_through_the_mechanism_only() -> None:
    wrong = []
    seen = 0
    for name in modules():
        known = next((reason for place, reason in ONLY_COMMANDS.items() if name.startswith(place)), "")
        for text in messages(PACKAGE / name):
            seen += 1
            value = str(text.value)
            if name.startswith(OTHERS) or re.search("keras|pip install|vela ", value):
                continue  # what other programs understand, and tests in Python
            found = KEYWORD.search(value) or (None if known else OPTION.search(value))
            if found:
                wrong.append(f"{name}:{text.lineno}: {found[0]}: {value}")
    assert seen > 2000
    assert not wrong, "\n".join(wrong)


def prose(path: Path) -> Iterator[ast.Constant]:
    """Yield the texts of a module in which words stand: no docstrings, and no arguments of programs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for text in texts(tree):
        if id(text) not in silent and re.search(r"[a-z] ", str(text.value)):
            yield text


def test_lines_that_are_no_errors_name_options_through_the_mechanism_too() -> None:
    options = {text for name in _COMMANDS for text in _options(name) if text.startswith("--")}
    outright = re.compile(
        r"(?<![\w-])(" + "|".join(sorted(map(re.escape, options), key=len, reverse=True)) + r")(?![\w-])"
    )
    wrong, seen = [], 0
    for name in modules():
        if not name.startswith((*ONLY_COMMANDS, *OTHERS, *FOR_SHELLS)):
            for text in prose(PACKAGE / name):
                seen += 1
                if outright.search(str(text.value)):
                    wrong.append(f"{name}:{text.lineno}: {text.value}")
    pages = sorted((PACKAGE / "report" / "html").rglob("*.html"))
    for page in pages:
        shown = re.sub(r"(?s)<style.*?</style>|<script.*?</script>", "", page.read_text(encoding="utf-8"))
        wrong += [f"{page.name}: {found[0]}" for found in outright.finditer(shown)]
    assert (seen > 4000, len(pages) > 3) == (True, True)
    assert not wrong, "\n".join(wrong)


def calls(*functions: str) -> Iterator[tuple[str, ast.Call]]:
    for name in modules():
        source = (PACKAGE / name).read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "from ferrule.interface import" in source else ():
            match node:
                case ast.Call(func=ast.Name(id=function)) if function in functions:
                    yield name, node


def test_options_of_the_mechanism_exist_on_the_command_line() -> None:
    known = {text for name in _COMMANDS for text in _options(name)}
    asked = set()
    for _, call in calls("option", "name_of"):
        (first, *_) = call.args
        assert isinstance(first, ast.Constant)
        if not str(first.value).startswith("-"):  # those of the command line declare one
            asked.add(f"--{str(first.value).replace('_', '-')}")
    assert asked <= known
    assert {"--real", "--signature", "--dequantize-weights"} <= asked


def _options(name: str) -> Iterator[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    groups = command.commands.values() if isinstance(command, click.Group) else ()
    for each in (command, *groups):
        for parameter in each.params:
            yield from parameter.opts


def test_spellings() -> None:
    text = (
        f"give {option('real')}, {option('signature', 'NAME')} or {option('engine', 'qemu')}; {name_of('input_rows')}"
    )
    assert spelled(text) == 'give real=True, signature=NAME or engine="qemu"; input_rows'
    with command_line():
        assert spelled(text) == "give --real, --signature NAME or --engine qemu; --input-rows"
        spell_for(command_line=False)
        assert not is_command_line()
    assert spelled(either("a", "b")) == "b"


def test_an_error_keeps_both_spellings() -> None:
    error = FerruleError(f"{name_of('data')} is wrong", hint=option("real"))
    error.at("here")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 our own
    for each in (error, again):
        assert (str(each), each.hint) == ("here: data is wrong", "real=True")
        with command_line():
            assert (str(each), each.hint) == ("here: --data is wrong", "--real")
    assert repr(error) == "FerruleError('here: data is wrong')"


@given(st.text(st.sampled_from([*MARKS, "a", "-", "\n"])))
def test_marks_in_texts_of_others_do_not_reach_a_reader(text: str) -> None:
    shown = spelled(visible(text))
    assert not set(MARKS) & set(shown)
    with command_line():
        assert not set(MARKS) & set(spelled(visible(text)))


def _refused(act: Callable[[], object]) -> FerruleError:
    with pytest.raises(FerruleError) as caught:
        act()
    return caught.value


FAILURES: dict[str, Callable[[], object]] = {
    "real": lambda: small_networks.dense().run([np.zeros((1, 6), np.float32)], real=False),
    "input_rows": lambda: ferrule.Job(input_rows=True),
    "board": lambda: ferrule.evaluate(small_networks.dense(), "x.npy", on_board=True),
    "jobs": lambda: ferrule.evaluate(small_networks.dense(), "x.npy", jobs=2),
    "data": lambda: ferrule.evaluate(small_networks.dense(), "missing.npx"),
    "metric": lambda: ferrule.evaluate(small_networks.dense(), "x.npy", metrics=["missing.py:f"]),
    "iterations": lambda: (_ for _ in ()).throw(IterationLimitError(3)),
    "fallback": lambda: ferrule.compile(small_networks.dense(), backends=["CpuRef", "CpuAcc"], fallback=False),
}


@pytest.mark.parametrize("name", FAILURES)
def test_each_interface_has_its_own_words(name: str) -> None:
    error = _refused(FAILURES[name])
    said = f"{error} {error.hint}"
    assert not re.search(r"(?<!\w)--[a-z]", said)
    with command_line():
        typed = f"{error} {error.hint}"
        assert not KEYWORD.search(typed)
    assert said != typed, "it names nothing of the interface"
