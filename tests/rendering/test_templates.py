# SPDX-License-Identifier: Apache-2.0
"""No value gets into a file without the quoting of its place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import nodes

import ferrule
from ferrule.errors import FerruleError
from ferrule.rendering import Templates
from ferrule.rendering.languages import LANGUAGES, language_of
from ferrule.rendering.templates import environment

PACKAGE = Path(ferrule.__file__).parent
FOLDERS = [PACKAGE / "firmware" / "templates", PACKAGE / "codegen" / "templates"]
TEMPLATES = [(folder, path.relative_to(folder).as_posix()) for folder in FOLDERS for path in folder.rglob("*.j2")]
QUOTING = "quote for "
ENVIRONMENTS = {folder: environment(folder) for folder in FOLDERS}


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that have templates or verbatim text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "tests" not in path.relative_to(PACKAGE).parts and ("jinja2" in text or "Verbatim" in text):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(text)


def bare(node: nodes.Expr) -> bool:
    """Return whether a part of the output could be a value without quoting."""
    match node:
        case nodes.TemplateData() | nodes.Const():
            return False
        case nodes.CondExpr():
            return bare(node.expr1) or (node.expr2 is not None and bare(node.expr2))
        case nodes.Filter():
            return not node.name.startswith(QUOTING)
        case _:
            return True


def test_there_are_templates_in_every_language() -> None:
    assert len(TEMPLATES) > 40
    assert {language_of(name).files for _, name in TEMPLATES} == {language.files for language in LANGUAGES}


@pytest.mark.parametrize(("folder", "name"), TEMPLATES, ids=[name for _, name in TEMPLATES])
def test_every_value_is_quoted(folder: Path, name: str) -> None:
    own = ENVIRONMENTS[folder]
    text = (folder / name).read_text(encoding="utf-8")
    tree = own._parse(text, name, None)
    outputs = list(tree.find_all(nodes.Output))
    assert not [part for output in outputs for part in output.nodes if bare(part)]
    assert not list(tree.find_all((nodes.FilterBlock, nodes.CallBlock, nodes.Macro, nodes.AssignBlock)))
    values = text.count("{{")
    assert values == 0 or any(isinstance(part, nodes.Filter) for out in outputs for part in out.nodes) or "raw" in text


def test_templates_are_rendered_in_two_modules() -> None:
    """Another environment would not quote, and verbatim text is made only by writers of their own language."""
    renders = {name for name, tree in sources() if any(_imports(tree, "jinja2"))}
    assert renders == {
        "rendering/templates.py",
        "report/html/environment.py",  # HTML, which jinja2 itself escapes
    }
    verbatim = {
        name
        for name, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "Verbatim" and isinstance(node.ctx, ast.Load)
    }
    assert verbatim == {
        "devices/register_source.py",  # register tables as Python and C
        "firmware/micro_programs.py",  # names and assembly code of its own
        "firmware/mlperf_tiny.py",  # names that it made and numbers
        "firmware/platforms/cmsis.py",  # paths with variables of CMake, all constants
        "codegen/program.py",  # C from the document model
        "codegen/tvm_names.py",  # likewise
        "firmware/platforms/zephyr_tools.py",  # a comment behind a command, a constant
        "rendering/quoting.py",
        "rendering/templates.py",  # numbers and calls
    }


def _imports(tree: ast.Module, module: str) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == module:
            yield node
        if isinstance(node, ast.Import) and any(each.name.split(".")[0] == module for each in node.names):
            yield node


def rendered(folder: Path, name: str, text: str, **values: object) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return Templates(folder).render(name, **values)


@pytest.mark.parametrize(
    ("name", "text", "value", "expected"),
    [
        ("a.c.j2", "/* {{ x }} */\n", "*/ int y; /*", "/* * / int y; / * */\n"),
        ("a.c.j2", 'char c[] = "{{ x }}"; /* {{ x }} */\n', '"*/\\', 'char c[] = "\\"*/\\\\"; /* "* /\\ */\n'),
        ("a.h.j2", "int {{ x }};\n", "y1", "int y1;\n"),
        ("a.mk.j2", "A = {{ x | shell }} # {{ x }}\n", "$(x) y\\", "A = '$$(x) y\\' # $(x) y/\n"),
        ("a.cmake.j2", 'set(A {{ x }} "{{ x }}") # {{ x }}\n', 'a "$b', 'set(A a\\ \\"\\$b "a \\"\\$b") # a "$b\n'),
        ("a.yml.j2", "a: {{ x }} # {{ x }}\n", "b: #c", 'a: "b: #c" # b: #c\n'),
        ("a.md.j2", "{{ x }}\n\n    do {{ x }}\n", "*a* `b`", "\\*a\\* \\`b\\`\n\n    do '*a* `b`'\n"),
        ("a.md.j2", "```c\nint {{ x }};\n```\n{{ x }}\n", "a_b", "```c\nint a_b;\n```\na_b\n"),
        (
            "a.toml.j2",
            'a = {{ x }}\nb = "c{{ x }}" # {{ x }}\n',
            '"d',
            'a = "\\U00000022d"\nb = "c\\U00000022d" # "d\n',
        ),
        ("a.repl.j2", '// {{ x }}\nusing "{{ x }}"\n', 'a"', '// a"\nusing "a\\""\n'),
        ("a.c.j2", "/* {% if x %}{{ x }}{% else %}b{% endif %} */\n", "*/", "/* * / */\n"),
        ("a.c.j2", "/* {% for each in x %}{{ each }} {% endfor %}*/\n", ["*/", "/*"], "/* * / / * */\n"),
        ("a.c.j2", "int a{{ 'b' if x else '' }};{{ c_call('f', '&a', x) }}\n", "c", "int ab;f(&a, c)\n"),
    ],
)
def test_a_value_is_quoted_for_its_place(tmp_path: Path, name: str, text: str, value: object, expected: str) -> None:
    assert rendered(tmp_path, name, text, x=value) == expected


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.c.j2", "/*{{ x }} */", r"a value follows '\*'"),
        ("a.c.j2", "/* {{ x }}/ */", "a value is followed by '/'"),
        ("a.c.j2", "/* {{ x }}{{ x }} */", "a value follows"),
        ("a.c.j2", "/* {{ x }}", "is not closed"),
        ("a.c.j2", "{% if x %}/* a{% endif %} */", "begins in another context than it ends"),
        ("a.c.j2", "{{ '/*' if x else '' }} */", "begins in another context than it ends"),
        ("a.c.j2", "{% macro m() %}{{ x }}{% endmacro %}", "a Macro can't be here"),
        ("a.c.j2", "{% filter upper %}{{ x }}{% endfilter %}", "a FilterBlock can't be here"),
        ("a.c.j2", "{% set y %}{{ x }}{% endset %}", "a AssignBlock can't be here"),
        ("a.yml.j2", "a: b{{ x }}", "must begin after a space"),
        ("a.yml.j2", "a: {{ x }}b", "must stand alone"),
        ("a.cmake.j2", 'set(A "\\{{ x }}")', "a value follows"),
    ],
)
def test_templates_that_cannot_be_quoted_are_refused(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        rendered(tmp_path, name, text, x="y")


def test_a_file_in_no_known_language_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"no language is known for the template a\.xyz"):
        rendered(tmp_path, "a.xyz.j2", "{{ x }}", x="y")


@pytest.mark.parametrize("text", ["a; b", "f(x); g(y", "a /* b", '"', "a\n#define x"])
def test_no_code_gets_into_calls(tmp_path: Path, text: str) -> None:
    for line in ("{{ c_call('f', x) }}", "{{ c_variable('int a', x) }}", "{{ c_call(x) }}"):
        with pytest.raises(FerruleError):
            rendered(tmp_path, "a.c.j2", line, x=text)


def test_words_have_8_digits_in_either_case() -> None:
    hexadecimal = ENVIRONMENTS[FOLDERS[0]].filters["hex"]
    assert (hexadecimal(0xAB), hexadecimal(0xAB, upper=True)) == ("0x000000ab", "0x000000AB")
