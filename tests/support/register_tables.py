# SPDX-License-Identifier: Apache-2.0
"""A register table with one register of each kind."""

from ferrule.devices import Access, Field, Register, RegisterTable

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
