# SPDX-License-Identifier: Apache-2.0
"""Pages in a browser: axe-core finds nothing that assistive technology cannot use, and none is wider than a phone."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
from children import ran
from needs import require_variable
from saved_documents import documents

from ferrule.report.html import html_fragment, html_page

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
    "--dump-dom",
)
SCRIPT = """
(async () => {
  document.querySelectorAll("details").forEach(each => { each.open = true; });
  const width = document.documentElement;
  const found = {
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    width: innerWidth,
    over: width.scrollWidth - width.clientWidth,
    violations: [],
  };
  const results = await axe.run(document, { resultTypes: ["violations"] });
  found.violations = results.violations.map(each => `${each.id}: ${each.help}: ${each.nodes[0].html}`);
  document.documentElement.textContent = "RESULT" + JSON.stringify(found) + "END";
})();
"""


def run_page(chromium: Path, page: str, folder: Path, *options: str) -> dict[str, Any]:
    """Return what the script of a page has put between RESULT and END, as JSON."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    own = ("--window-size=500,900", f"--user-data-dir={folder / 'profile'}", (folder / "page.html").as_uri())
    done = ran([chromium, *OPTIONS, *options, *own], check=True, timeout=120)
    text = html.unescape(done.stdout.split("RESULT")[-1].split("END")[0])
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", documents())
def test_a_page_is_accessible(kind: str, scheme: str, tmp_path: Path) -> None:
    chromium, axe = require_variable("FERRULE_CHROMIUM"), require_variable("FERRULE_AXE")
    page = html_page(documents("a <name> of a model/with;long/parts" * 3)[kind])
    start = page.index("<meta http-equiv")
    page = page[:start] + page[page.index(">", start) + 1 :]  # the policy, which would refuse the check itself
    script = axe.read_text(encoding="utf-8")
    (tmp_path / "axe.js").write_text(script, encoding="utf-8")
    (tmp_path / "check.js").write_text(SCRIPT, encoding="utf-8")
    scripts = '<script src="axe.js"></script><script src="check.js"></script>'
    scheme_option = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    found = run_page(chromium, page.replace("</body>", f"{scripts}</body>"), tmp_path, scheme_option)
    assert found["violations"] == []
    assert found["over"] == 0, f"wider than {found['width']} px"
    assert found["dark"] == (scheme == "dark")


NOTEBOOK = """
.common { font-family: serif; line-height: 3; text-align: right; letter-spacing: 2px; color: red; }
.common dl { margin: 0 40px; } .common dt { float: left; width: 20%; clear: left; font-weight: bold; }
.common dd { margin-left: 30%; } .common table { table-layout: fixed; border: 3px solid red; margin: 0 auto; }
.common tbody tr:nth-child(odd) td.num { background: red; text-align: center; } .common tr:hover { background: red; }
.common ul:not(.list-inline) li, .common ol { list-style: square; padding: 40px; } .common pre { border: 1px solid; }
.common h1:first-child, .common h2, .common h3 { color: red; font-style: italic; } .common p + p { margin-top: 9em; }
.common a:link { color: red; } .common * { text-indent: 3px; word-spacing: 4px; float: right; }
"""
"""Rules as notebooks have them: for elements in the class of an output."""
COMPARE = """
const [plain, within] = [...document.querySelectorAll(".ferrule")].map(each => [each, ...each.querySelectorAll("*")]);
const found = { elements: plain.length, differences: [] };
plain.forEach((element, index) => {
  const [one, other] = [getComputedStyle(element), getComputedStyle(within[index])];
  for (const name of one) {
    const [mine, its] = [one.getPropertyValue(name), other.getPropertyValue(name)];
    if (mine !== its && !/^(block|inline)-size$/.test(name))  // width and height are compared
      found.differences.push(`${element.tagName}.${element.className}: ${name} ${mine}, ${its}`);
  }
});
document.documentElement.textContent = "RESULT" + JSON.stringify(found) + "END";
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", documents())
def test_the_style_of_a_notebook_does_not_leak_in(kind: str, tmp_path: Path) -> None:
    chromium = require_variable("FERRULE_CHROMIUM")
    fragment = html_fragment(documents("model")[kind])
    (tmp_path / "check.js").write_text(COMPARE, encoding="utf-8")
    page = f'<style>{NOTEBOOK}</style><div>{fragment}</div><div class="common">{fragment}</div>'
    whole = f'<!DOCTYPE html><meta charset="utf-8"><body>{page}<script src="check.js"></script></body>'
    found = run_page(chromium, whole, tmp_path)
    assert found["elements"] > 10
    assert found["differences"] == []
