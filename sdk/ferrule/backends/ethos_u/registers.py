# SPDX-License-Identifier: Apache-2.0
"""The registers of Ethos-U55 and U65, as far as their driver uses them; offsets and bits as in its interface header."""

from __future__ import annotations

from ferrule.devices import Access, EnumeratedValue, Field, Register, RegisterTable

REGIONS = 8
"""Number of base addresses."""
EVENT_COUNTERS = 4
"""Number of event counters of the performance monitor."""
CYCLE_COUNTER = 1 << 31
"""The bit of the cycle counter in the enabling, overflow and interrupt registers of the performance monitor."""
GATING = 0xC
"""CMD after a reset: clock and power may be switched off."""

_PROTECTION = (
    Field(name="CPL", bit=0, doc="1 if privileged"),
    Field(name="CSL", bit=1, doc="0 if secure"),
)
_COUNTERS = (
    Field(name="EVENTS", bit=0, width=EVENT_COUNTERS, doc="the event counters, one bit each"),
    Field(name="CYCLES", bit=31, doc="the cycle counter"),
)
_AXI_LIMIT = (
    Field(name="MAX_BEATS", bit=0, width=2),
    Field(name="MEMTYPE", bit=4, width=4),
    Field(name="READS_M1", bit=16, width=8, doc="outstanding reads minus 1"),
    Field(name="WRITES_M1", bit=24, width=8, doc="outstanding writes minus 1"),
)

_CONTROL = (
    Register(
        name="ID",
        offset=0x000,
        access=Access.READ_ONLY,
        fields=(
            Field(name="VERSION_STATUS", bit=0, width=4),
            Field(name="VERSION_MINOR", bit=4, width=4),
            Field(name="VERSION_MAJOR", bit=8, width=4),
            Field(name="PRODUCT_MAJOR", bit=12, width=4),
            Field(name="ARCH_PATCH", bit=16, width=4),
            Field(name="ARCH_MINOR", bit=20, width=8),
            Field(name="ARCH_MAJOR", bit=28, width=4),
        ),
        doc="version of the product and of its architecture",
    ),
    Register(
        name="STATUS",
        offset=0x004,
        access=Access.READ_ONLY,
        fields=(
            Field(name="RUNNING", bit=0, doc="a command stream is being executed"),
            Field(name="IRQ", bit=1, doc="the interrupt is raised; CMD.CLEAR_IRQ clears it"),
            Field(name="BUS", bit=2, doc="memory refused an access; only a reset clears it"),
            Field(name="RESETTING", bit=3, doc="a reset is going on"),
            Field(name="PARSE_ERROR", bit=4, doc="the command stream is invalid; only a reset clears it"),
            Field(name="END_REACHED", bit=5, doc="STOP was executed; a write of QBASE or QSIZE clears it"),
            Field(name="PMU_IRQ", bit=6, doc="a counter has overflowed; CMD.CLEAR_IRQ clears it"),
            Field(name="WEIGHT_FAULT", bit=7, doc="the weights cannot be decoded; only a reset clears it"),
            Field(name="ECC_FAULT", bit=8, doc="an error in internal memory; only a reset clears it"),
            Field(name="FAULT_PORT", bit=11, doc="the interface of the refused access"),
            Field(
                name="FAULT_CHANNEL",
                bit=12,
                width=4,
                values=tuple(
                    EnumeratedValue(name=name, value=value)
                    for name, value in (
                        ("COMMAND", 0),
                        ("IFM", 1),
                        ("WEIGHTS", 2),
                        ("SCALES", 3),
                        ("DMA_READ", 4),
                        ("OFM", 8),
                        ("DMA_WRITE", 9),
                    )
                ),
                doc="the channel of the refused access",
            ),
            Field(name="IRQ_HISTORY", bit=16, width=16, doc="the masks of the STOP commands since they were cleared"),
        ),
        doc="status bits",
    ),
    Register(
        name="CMD",
        offset=0x008,
        reset=GATING,
        fields=(
            Field(name="RUN", bit=0, doc="writing 1 starts the command stream"),
            Field(name="CLEAR_IRQ", bit=1, doc="writing 1 lowers the interrupt"),
            Field(name="CLOCK_Q", bit=2, doc="the clock may be switched off while nothing runs"),
            Field(name="POWER_Q", bit=3, doc="the power may be switched off while nothing runs"),
            Field(name="STOP_REQUEST", bit=4, doc="stop after the operations that have begun; the model ignores it"),
            Field(name="CLEAR_HISTORY", bit=16, width=16, doc="bits of STATUS.IRQ_HISTORY that are cleared"),
        ),
        doc="commands",
    ),
    Register(name="RESET", offset=0x00C, fields=_PROTECTION, doc="writing it resets all registers and sets PROT"),
    Register(name="QBASE", offset=0x010, doc="address of the command stream, bits 31 to 0"),
    Register(name="QBASE_HIGH", offset=0x014, doc="bits 63 to 32; zero on Ethos-U55"),
    Register(name="QREAD", offset=0x018, access=Access.READ_ONLY, doc="bytes of the command stream that were read"),
    Register(name="QCONFIG", offset=0x01C, doc="AXI configuration of the command stream, 0 to 3"),
    Register(name="QSIZE", offset=0x020, doc="size of the command stream in bytes"),
    Register(name="PROT", offset=0x024, access=Access.READ_ONLY, fields=_PROTECTION, doc="the active levels"),
    Register(
        name="CONFIG",
        offset=0x028,
        access=Access.READ_ONLY,
        fields=(
            Field(name="MACS_LOG2", bit=0, width=4, doc="logarithm of the MACs per cycle"),
            Field(name="STREAM_VERSION", bit=4, width=4, doc="version of the command stream"),
            Field(name="SHRAM_KIB", bit=8, width=8, doc="internal memory in KiB"),
            Field(name="SAFETY", bit=26),
            Field(name="CUSTOM_DMA", bit=27),
            Field(name="PRODUCT", bit=28, width=4, doc="0 Ethos-U55, 1 Ethos-U65"),
        ),
        doc="configuration of the product",
    ),
    Register(name="LOCK", offset=0x02C, doc="a number without an effect, for software"),
    Register(name="REGIONCFG", offset=0x03C, doc="AXI configuration of each region, 2 bits each"),
    Register(
        name="AXI_LIMIT%s", offset=0x040, dim=4, increment=4, fields=_AXI_LIMIT, doc="limits of an AXI configuration"
    ),
    Register(name="BASEP%s", offset=0x080, dim=REGIONS, increment=8, doc="address of a region, bits 31 to 0"),
    Register(name="BASEP%s_HIGH", offset=0x084, dim=REGIONS, increment=8, doc="bits 63 to 32; zero on Ethos-U55"),
)

_MONITOR = (
    Register(
        name="PMCR",
        offset=0x180,
        reset=EVENT_COUNTERS << 11,
        fields=(
            Field(name="ENABLE", bit=0, doc="count"),
            Field(name="RESET_EVENTS", bit=1, doc="writing 1 sets the event counters to zero; reads as zero"),
            Field(name="RESET_CYCLES", bit=2, doc="writing 1 sets the cycle counter to zero; reads as zero"),
            Field(name="MASK_ENABLE", bit=3, doc="PMU_MASK of the command stream sets ENABLE"),
            Field(name="EVENT_COUNTERS", bit=11, width=5, access=Access.READ_ONLY, doc="number of event counters"),
        ),
        doc="control of the performance monitor",
    ),
    Register(name="PMCNTENSET", offset=0x184, access=Access.SET_BY_ONE, fields=_COUNTERS, doc="enables counters"),
    Register(name="PMCNTENCLR", offset=0x188, access=Access.CLEAR_BY_ONE, fields=_COUNTERS, doc="disables counters"),
    Register(name="PMOVSSET", offset=0x18C, access=Access.SET_BY_ONE, fields=_COUNTERS, doc="sets overflows"),
    Register(name="PMOVSCLR", offset=0x190, access=Access.CLEAR_BY_ONE, fields=_COUNTERS, doc="clears overflows"),
    Register(
        name="PMINTSET", offset=0x194, access=Access.SET_BY_ONE, fields=_COUNTERS, doc="enables overflow interrupts"
    ),
    Register(
        name="PMINTCLR", offset=0x198, access=Access.CLEAR_BY_ONE, fields=_COUNTERS, doc="disables overflow interrupts"
    ),
    Register(name="PMCCNTR", offset=0x1A0, doc="cycle counter, bits 31 to 0"),
    Register(name="PMCCNTR_HIGH", offset=0x1A4, doc="bits 47 to 32"),
    Register(
        name="PMCCNTR_CFG",
        offset=0x1A8,
        fields=(
            Field(name="START", bit=0, width=10, doc="event that starts the cycle counter; the model only stores it"),
            Field(name="STOP", bit=16, width=10, doc="event that stops it; the model only stores it"),
        ),
    ),
    Register(name="PMCAXI_CHAN", offset=0x1AC, doc="choice of AXI events; the model only stores it"),
    Register(name="PMEVCNTR%s", offset=0x300, dim=EVENT_COUNTERS, increment=4, doc="event counter"),
    Register(name="PMEVTYPER%s", offset=0x380, dim=EVENT_COUNTERS, increment=4, doc="number of the counted event"),
)

TABLE = RegisterTable(
    name="ethos_u",
    registers=(*_CONTROL, *_MONITOR),
    size_bytes=0x1000,
    doc="Ethos-U55 and U65. Debug registers, the window to internal memory and the copies of the command stream's "
    "registers are missing: an access to them is a bus error.",
)
