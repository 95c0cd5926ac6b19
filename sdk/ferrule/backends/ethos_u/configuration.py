# SPDX-License-Identifier: Apache-2.0
"""The configurations of Ethos-U55 and Ethos-U65 that Vela compiles for.

The numbers are those of Vela 5.2.0 (its accelerator configurations and the first words of its streams).
"""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, UnsupportedError, unknown_name

ARCH_ID = 0x1006_6001
"""The ID register that Vela's streams state: architecture 1.0.6. A driver compares the architecture's version."""
_U85 = "ethos-u85"


@frozen
class Configuration:
    """One size of the NPU."""

    name: str
    """As Vela's option --accelerator-config names it, such as "ethos-u55-128"."""
    product: int
    """0 for Ethos-U55, 1 for Ethos-U65."""
    macs: int
    """Multiplications of 8 bits in a cycle, of all cores together."""
    cores: int
    """Core k computes output channels k, k + cores, and so on, from weights and scales of its own."""
    ofm_ublock_depth: int
    """Output channels that are computed at once; part of the order of weights."""
    ifm_ublock_depth: int
    """Input channels that are read at once; part of the order of weights."""
    shram_bytes: int
    """Internal memory of one core; its last 2 KiB hold the look-up tables."""

    @property
    def register(self) -> int:
        """The value of the register CONFIG, which a stream repeats in its first words."""
        kibibytes = self.cores * self.shram_bytes // 1024
        return self.product << 28 | kibibytes << 8 | (self.macs.bit_length() - 1)


def _row(
    name: str, product: int, macs: int, shram_kib: int, cores: int = 1, ofm_ublock_depth: int = 8
) -> Configuration:
    return Configuration(
        name=name,
        product=product,
        macs=macs,
        cores=cores,
        ofm_ublock_depth=ofm_ublock_depth,
        ifm_ublock_depth=8,
        shram_bytes=shram_kib * 1024,
    )


CONFIGURATIONS = (
    _row("ethos-u55-32", 0, 32, 16, ofm_ublock_depth=4),
    _row("ethos-u55-64", 0, 64, 16),
    _row("ethos-u55-128", 0, 128, 24),
    _row("ethos-u55-256", 0, 256, 48),
    _row("ethos-u65-256", 1, 256, 48),
    _row("ethos-u65-512", 1, 512, 48, cores=2),
)
_BY_NAME = {each.name: each for each in CONFIGURATIONS}
_BY_REGISTER = {each.register: each for each in CONFIGURATIONS}


def configuration(name: str) -> Configuration:
    """Return the configuration with Vela's name for it.

    Raises:
        UnsupportedError: it is one of Ethos-U85, whose streams and weights differ.
        FerruleError: there is none of this name.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.startswith(_U85):
        raise UnsupportedError(
            f"the configuration '{name}' is not supported: Ethos-U85 has other command streams and weights",
            hint=f"supported: {', '.join(_BY_NAME)}",
        )
    raise unknown_name("configuration of Ethos-U", name, _BY_NAME)


def configuration_of(register: int) -> Configuration:
    """Return the configuration with this value of the register CONFIG.

    Raises:
        FerruleError: none has it; for a product above 1, an UnsupportedError.
    """
    if register in _BY_REGISTER:
        return _BY_REGISTER[register]
    known = ", ".join(f"{each.register:#010x} ({each.name})" for each in CONFIGURATIONS)
    kind = UnsupportedError if register >> 28 > 1 else FerruleError
    raise kind(f"no configuration of Ethos-U55 or Ethos-U65 has CONFIG {register:#010x}", hint=f"known: {known}")
