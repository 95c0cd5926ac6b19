# SPDX-License-Identifier: Apache-2.0
"""The process of Vela: what it answers, and what happens if it fails, dies, hangs or is missing."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_networks import two_by_two

from ferrule.backends.device import BackendId
from ferrule.backends.ethos_u import vela
from ferrule.backends.ethos_u.report import read_report
from ferrule.backends.ethos_u.settings import Settings, settings_of
from ferrule.backends.ethos_u.support import EthosUSupport
from ferrule.backends.ethos_u.vela import VelaError, VelaResult, last_lines, run_vela
from ferrule.backends.target import default_target
from ferrule.errors import MissingToolError
from ferrule.formats import to_tflite
from ferrule.kept_process import KeptDiedError

pytestmark = pytest.mark.usefixtures("ethos_u_vela")
LIMIT_S = 300


@pytest.fixture
def settings() -> Settings:
    return settings_of(default_target(BackendId("EthosU")))


def test_it_answers_again_and_again(tmp_path: Path) -> None:
    process = vela.vela_process()
    for number in range(2):
        log = tmp_path / f"log{number}"
        assert process.run(log, ["--version"], LIMIT_S) == ""
        assert log.read_text().strip() == vela.vela_version()
    answer = process.run(tmp_path / "bad", ["--colour"], LIMIT_S)
    assert answer == "Vela ended with exit code 2"
    assert "unrecognized arguments: --colour" in (tmp_path / "bad").read_text()


def test_errors_name_the_reason(settings: Settings, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    class Broken:
        def __init__(self, error: BaseException | None) -> None:
            self.error = error

        def run(self, log: Path, arguments: list[str], timeout_s: float) -> str:
            del arguments, timeout_s
            log.write_text("first\n\nlast words\n")
            if self.error is not None:
                raise self.error
            return ""

    for error, message in (
        (TimeoutError(), "has not compiled a model of 1 B within 5 s: first; last words"),
        (OSError(8, "no"), "Vela cannot be started: no"),
        (None, "has not written the files that are expected of it"),
    ):
        monkeypatch.setattr(vela, "vela_process", lambda error=error: Broken(error))
        with pytest.raises(VelaError, match=message):
            run_vela([b"x"], settings, timeout_s=5)
    monkeypatch.setattr(vela, "vela_process", lambda: Broken(KeptDiedError("SIGSEGV")))
    (result,) = run_vela([b"x"], settings, timeout_s=5)
    assert (result.error, result.log) == ("Vela ended with SIGSEGV", "first\n\nlast words\n")
    assert not list((own_cache / "ethos_u").glob("*")), "a death is not kept"


def test_settings_that_do_not_fit_are_an_error_and_no_reason_against_a_layer() -> None:
    network = two_by_two()
    target = default_target(BackendId("EthosU"), options={"memory_mode": "Dedicated_Sram"})
    with pytest.raises(VelaError, match="Invalid configuration of arena_mem_area=OffChipFlash") as caught:
        EthosUSupport().supports(network, network.layers[0], target)
    assert "memory_mode" in str(caught.value.hint)


def test_results_are_kept_by_all_that_decides_them(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    assert not own_cache.exists()
    model = to_tflite(two_by_two())
    first, broken = run_vela([model, b"no model"], settings, timeout_s=LIMIT_S, database=True)
    assert first.npz
    assert "optimised" in first.database
    assert broken.error
    monkeypatch.setattr(vela, "vela_process", lambda: pytest.fail("Vela was called again"))
    assert run_vela([b"no model", model], settings, timeout_s=LIMIT_S, database=True) == (broken, first)
    with pytest.raises(pytest.fail.Exception):
        run_vela([model], replace(settings, optimise="Size"), timeout_s=LIMIT_S, database=True)
    with pytest.raises(pytest.fail.Exception):
        run_vela([model], settings, timeout_s=LIMIT_S)
    with pytest.raises(pytest.fail.Exception):
        run_vela([model], replace(settings, config_text="x"), timeout_s=LIMIT_S, database=True)
    others: dict[str, object] = {
        "_installed_files": lambda: "others",
        "vela_version": lambda: "0",
        "np": SimpleNamespace(__version__="0"),
    }
    for name, value in others.items():
        with monkeypatch.context() as patch:
            patch.setattr(vela, name, value)
            with pytest.raises(pytest.fail.Exception):
                run_vela([model], settings, timeout_s=LIMIT_S, database=True)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vela, "PACKAGE", "ethos-u-vela-that-is-missing")
    vela.vela_version.cache_clear()
    try:
        with pytest.raises(MissingToolError, match="ethos-u-vela is missing") as caught:
            vela.vela_version()
    finally:
        vela.vela_version.cache_clear()
    assert caught.value.hint == "pip install 'ferrule[ethos-u]'"


def test_last_lines_are_one_line() -> None:
    assert last_lines("\n a \n\nb\n") == "a; b"
    assert last_lines(" \n") == "it says nothing"


def test_a_report_of_another_form_is_refused(settings: Settings) -> None:
    for summary, database in (("", ""), ("a\n1\n", ""), ("cycles_total\nx\n", "<debug/>")):
        with pytest.raises(VelaError, match="has an unexpected form"):
            read_report(VelaResult(error="", log="", summary=summary, database=database), settings, ["a"])
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301
