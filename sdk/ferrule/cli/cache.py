# SPDX-License-Identifier: Apache-2.0
"""`ferrule cache`."""

from __future__ import annotations

import click

from ferrule.cli.console import echo
from ferrule.cli.parameters import flag


@click.command("cache")
@flag("--clear", "Delete everything in the cache.")
def command(clear: bool) -> None:
    """Print the cache's folder and size, in all and by its parts.

    The environment variable FERRULE_CACHE names another folder. Clear it while no build is running.
    """
    from ferrule.cache import cache_folder, cache_sizes, clear_cache

    if clear:
        clear_cache()
    sizes = cache_sizes()
    echo(f"{cache_folder()}: {sum(sizes.values()):,} B")
    for name, size_bytes in sizes.items():
        echo(f"  {name}: {size_bytes:,} B")
