# SPDX-License-Identifier: Apache-2.0
"""Register tables with one register of each kind."""

from ferrule.devices import Access, EnumeratedValue, Field, Register, RegisterTable

ADDER = RegisterTable(
    name="adder",
    registers=(
        Register(name="ID", offset=0, access=Access.READ_ONLY, reset=0x41444452, doc="who it is"),
        Register(
            name="CONTROL",
            offset=4,
            fields=(Field(name="START", bit=0, doc="go"), Field(name="MODE", bit=4, width=3, doc="how")),
            doc="ends a comment: */",
        ),
        Register(name="STATUS", offset=8, access=Access.CLEAR_BY_ONE, fields=(Field(name="DONE", bit=31),)),
        Register(name="TRIGGER", offset=0xC, access=Access.WRITE_ONLY),
    ),
    size_bytes=0x100,
)

TIMER = RegisterTable(
    name="timer",
    doc="Counts & stops",
    registers=(
        Register(
            name="CONTROL",
            offset=0,
            size_bits=16,
            reset=0x10,
            fields=(
                Field(name="ENABLE", bit=0),
                Field(
                    name="MODE",
                    bit=4,
                    width=2,
                    values=(
                        EnumeratedValue(name="ONCE", value=0, doc="stops at zero"),
                        EnumeratedValue(name="REPEAT", value=1),
                    ),
                ),
                Field(name="KEY", bit=8, width=8, access=Access.WRITE_ONLY),
            ),
        ),
        Register(name="PRESCALER", offset=2, size_bits=8),
        Register(
            name="EVENTS",
            offset=4,
            fields=(
                Field(name="OVER", bit=0, access=Access.CLEAR_BY_ONE),
                Field(name="MASK", bit=1, access=Access.SET_BY_ONE),
                Field(name="LOST", bit=8, width=8, access=Access.READ_ONLY, read_clears=True),
                Field(name="PLAIN", bit=16, width=4),
            ),
        ),
        Register(name="CAUSE", offset=8, access=Access.READ_ONLY, read_clears=True),
        Register(name="SET", offset=0xC, access=Access.SET_BY_ONE),
        Register(name="COMPARE%s", offset=0x10, dim=4, increment=8, reset=7, doc="limits"),
        Register(name="CH%s_NOW", offset=0x14, dim=2, increment=8, indices=("A", "B"), access=Access.READ_ONLY),
    ),
    size_bytes=0x40,
)
"""A table with an array, named values, and every access and size."""
