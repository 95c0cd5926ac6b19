# SPDX-License-Identifier: Apache-2.0
"""A script that runs Vela for one model after the other in a `KeptProcess`; it imports nothing from Ferrule."""

from __future__ import annotations


def answer(arguments: list[str]) -> str:
    """Run Vela with its arguments; return "" or the error."""
    from ethosu.vela.vela import main as vela

    try:
        code = vela(arguments)
    except SystemExit as error:
        code = error.code
    except Exception as error:  # noqa: BLE001 it becomes the answer
        return f"{type(error).__name__}: {error}".strip()
    return f"Vela ended with exit code {code}" if code else ""
