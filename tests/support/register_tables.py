# SPDX-License-Identifier: Apache-2.0
"""Register tables with one register of each kind."""

from ferrule.devices import Access, EnumeratedValue, Field, Register, RegisterTable

ADDER = RegisterTable(
    name="adder",
    registers=(
        Register("ID", 0, access=Access.READ_ONLY, reset=0x41444452, doc="who it is"),
        Register(
            "CONTROL",
            4,
            fields=(Field("START", 0, doc="go"), Field("MODE", 4, width=3, doc="how")),
            doc="ends a comment: */",
        ),
        Register("STATUS", 8, access=Access.CLEAR_BY_ONE, fields=(Field("DONE", 31),)),
        Register("TRIGGER", 0xC, access=Access.WRITE_ONLY),
    ),
    size_bytes=0x100,
)

TIMER = RegisterTable(
    name="timer",
    doc="Counts & stops",
    registers=(
        Register(
            "CONTROL",
            0,
            size_bits=16,
            reset=0x10,
            fields=(
                Field("ENABLE", 0),
                Field(
                    "MODE",
                    4,
                    width=2,
                    values=(
                        EnumeratedValue(name="ONCE", value=0, doc="stops at zero"),
                        EnumeratedValue(name="REPEAT", value=1),
                    ),
                ),
                Field("KEY", 8, width=8, access=Access.WRITE_ONLY),
            ),
        ),
        Register("PRESCALER", 2, size_bits=8),
        Register(
            "EVENTS",
            4,
            fields=(
                Field("OVER", 0, access=Access.CLEAR_BY_ONE),
                Field("MASK", 1, access=Access.SET_BY_ONE),
                Field("LOST", 8, width=8, access=Access.READ_ONLY, read_clears=True),
                Field("PLAIN", 16, width=4),
            ),
        ),
        Register("CAUSE", 8, access=Access.READ_ONLY, read_clears=True),
        Register("SET", 0xC, access=Access.SET_BY_ONE),
        Register("COMPARE%s", 0x10, dim=4, increment=8, reset=7, doc="limits"),
        Register("CH%s_NOW", 0x14, dim=2, increment=8, indices=("A", "B"), access=Access.READ_ONLY),
    ),
    size_bytes=0x40,
)
"""A table with an array, named values, and every access and size."""
