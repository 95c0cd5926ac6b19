# SPDX-License-Identifier: Apache-2.0
"""Pages in a browser: axe-core finds nothing that assistive technology cannot use, and none is wider than a phone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import saved_documents
from needs import require_variable

from ferrule.report.html import html_page

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


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", saved_documents.documents())
def test_a_page_is_accessible(kind: str, scheme: str, tmp_path: Path) -> None:
    chromium, axe = require_variable("FERRULE_CHROMIUM"), require_variable("FERRULE_AXE")
    page = html_page(saved_documents.documents("a <name> of a model/with;long/parts" * 3)[kind])
    start = page.index("<meta http-equiv")
    page = page[:start] + page[page.index(">", start) + 1 :]  # the policy, which would refuse the check itself
    script = axe.read_text(encoding="utf-8")
    (tmp_path / "axe.js").write_text(script, encoding="utf-8")
    (tmp_path / "check.js").write_text(SCRIPT, encoding="utf-8")
    scripts = '<script src="axe.js"></script><script src="check.js"></script>'
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{scripts}</body>"), encoding="utf-8")
    done = subprocess.run(
        [
            chromium,
            *OPTIONS,
            f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
            "--window-size=500,900",
            f"--user-data-dir={tmp_path / 'profile'}",
            (tmp_path / "page.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    text = done.stdout.split("RESULT")[-1].split("END")[0]
    found = json.loads(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert found["violations"] == []
    assert found["over"] == 0, f"wider than {found['width']} px"
    assert found["dark"] == (scheme == "dark")
