# SPDX-License-Identifier: Apache-2.0
"""`python -m ferrule.testing.sanitized_child file function`: the child process of `run_sanitized`."""

from __future__ import annotations

import importlib.util
import sys


def main() -> None:
    """Run a function of a file."""
    path, name = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("sanitized", path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules["sanitized"] = module
    spec.loader.exec_module(module)
    getattr(module, name)()


if __name__ == "__main__":
    main()
