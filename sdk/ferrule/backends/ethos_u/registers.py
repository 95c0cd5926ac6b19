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
    Field("CPL", 0, doc="1 if privileged"),
    Field("CSL", 1, doc="0 if secure"),
)
_COUNTERS = (
    Field("EVENTS", 0, width=EVENT_COUNTERS, doc="the event counters, one bit each"),
    Field("CYCLES", 31, doc="the cycle counter"),
)
_AXI_LIMIT = (
    Field("MAX_BEATS", 0, width=2),
    Field("MEMTYPE", 4, width=4),
    Field("READS_M1", 16, width=8, doc="outstanding reads minus 1"),
    Field("WRITES_M1", 24, width=8, doc="outstanding writes minus 1"),
)

_CONTROL = (
    Register(
        "ID",
        0x000,
        access=Access.READ_ONLY,
        fields=(
            Field("VERSION_STATUS", 0, width=4),
            Field("VERSION_MINOR", 4, width=4),
            Field("VERSION_MAJOR", 8, width=4),
            Field("PRODUCT_MAJOR", 12, width=4),
            Field("ARCH_PATCH", 16, width=4),
            Field("ARCH_MINOR", 20, width=8),
            Field("ARCH_MAJOR", 28, width=4),
        ),
        doc="version of the product and of its architecture",
    ),
    Register(
        "STATUS",
        0x004,
        access=Access.READ_ONLY,
        fields=(
            Field("RUNNING", 0, doc="a command stream is being executed"),
            Field("IRQ", 1, doc="the interrupt is raised; CMD.CLEAR_IRQ clears it"),
            Field("BUS", 2, doc="memory refused an access; only a reset clears it"),
            Field("RESETTING", 3, doc="a reset is going on"),
            Field("PARSE_ERROR", 4, doc="the command stream is invalid; only a reset clears it"),
            Field("END_REACHED", 5, doc="STOP was executed; a write of QBASE or QSIZE clears it"),
            Field("PMU_IRQ", 6, doc="a counter has overflowed; CMD.CLEAR_IRQ clears it"),
            Field("WEIGHT_FAULT", 7, doc="the weights cannot be decoded; only a reset clears it"),
            Field("ECC_FAULT", 8, doc="an error in internal memory; only a reset clears it"),
            Field("FAULT_PORT", 11, doc="the interface of the refused access"),
            Field(
                "FAULT_CHANNEL",
                12,
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
            Field("IRQ_HISTORY", 16, width=16, doc="the masks of the STOP commands since they were cleared"),
        ),
        doc="status bits",
    ),
    Register(
        "CMD",
        0x008,
        reset=GATING,
        fields=(
            Field("RUN", 0, doc="writing 1 starts the command stream"),
            Field("CLEAR_IRQ", 1, doc="writing 1 lowers the interrupt"),
            Field("CLOCK_Q", 2, doc="the clock may be switched off while nothing runs"),
            Field("POWER_Q", 3, doc="the power may be switched off while nothing runs"),
            Field("STOP_REQUEST", 4, doc="stop after the operations that have begun; the model ignores it"),
            Field("CLEAR_HISTORY", 16, width=16, doc="bits of STATUS.IRQ_HISTORY that are cleared"),
        ),
        doc="commands",
    ),
    Register("RESET", 0x00C, fields=_PROTECTION, doc="writing it resets all registers and sets PROT"),
    Register("QBASE", 0x010, doc="address of the command stream, bits 31 to 0"),
    Register("QBASE_HIGH", 0x014, doc="bits 63 to 32; zero on Ethos-U55"),
    Register("QREAD", 0x018, access=Access.READ_ONLY, doc="bytes of the command stream that were read"),
    Register("QCONFIG", 0x01C, doc="AXI configuration of the command stream, 0 to 3"),
    Register("QSIZE", 0x020, doc="size of the command stream in bytes"),
    Register("PROT", 0x024, access=Access.READ_ONLY, fields=_PROTECTION, doc="the active levels"),
    Register(
        "CONFIG",
        0x028,
        access=Access.READ_ONLY,
        fields=(
            Field("MACS_LOG2", 0, width=4, doc="logarithm of the MACs per cycle"),
            Field("STREAM_VERSION", 4, width=4, doc="version of the command stream"),
            Field("SHRAM_KIB", 8, width=8, doc="internal memory in KiB"),
            Field("SAFETY", 26),
            Field("CUSTOM_DMA", 27),
            Field("PRODUCT", 28, width=4, doc="0 Ethos-U55, 1 Ethos-U65"),
        ),
        doc="configuration of the product",
    ),
    Register("LOCK", 0x02C, doc="a number without an effect, for software"),
    Register("REGIONCFG", 0x03C, doc="AXI configuration of each region, 2 bits each"),
    Register("AXI_LIMIT%s", 0x040, dim=4, increment=4, fields=_AXI_LIMIT, doc="limits of an AXI configuration"),
    Register("BASEP%s", 0x080, dim=REGIONS, increment=8, doc="address of a region, bits 31 to 0"),
    Register("BASEP%s_HIGH", 0x084, dim=REGIONS, increment=8, doc="bits 63 to 32; zero on Ethos-U55"),
)

_MONITOR = (
    Register(
        "PMCR",
        0x180,
        reset=EVENT_COUNTERS << 11,
        fields=(
            Field("ENABLE", 0, doc="count"),
            Field("RESET_EVENTS", 1, doc="writing 1 sets the event counters to zero; reads as zero"),
            Field("RESET_CYCLES", 2, doc="writing 1 sets the cycle counter to zero; reads as zero"),
            Field("MASK_ENABLE", 3, doc="PMU_MASK of the command stream sets ENABLE"),
            Field("EVENT_COUNTERS", 11, width=5, access=Access.READ_ONLY, doc="number of event counters"),
        ),
        doc="control of the performance monitor",
    ),
    Register("PMCNTENSET", 0x184, access=Access.SET_BY_ONE, fields=_COUNTERS, doc="enables counters"),
    Register("PMCNTENCLR", 0x188, access=Access.CLEAR_BY_ONE, fields=_COUNTERS, doc="disables counters"),
    Register("PMOVSSET", 0x18C, access=Access.SET_BY_ONE, fields=_COUNTERS, doc="sets overflows"),
    Register("PMOVSCLR", 0x190, access=Access.CLEAR_BY_ONE, fields=_COUNTERS, doc="clears overflows"),
    Register("PMINTSET", 0x194, access=Access.SET_BY_ONE, fields=_COUNTERS, doc="enables overflow interrupts"),
    Register("PMINTCLR", 0x198, access=Access.CLEAR_BY_ONE, fields=_COUNTERS, doc="disables overflow interrupts"),
    Register("PMCCNTR", 0x1A0, doc="cycle counter, bits 31 to 0"),
    Register("PMCCNTR_HIGH", 0x1A4, doc="bits 47 to 32"),
    Register(
        "PMCCNTR_CFG",
        0x1A8,
        fields=(
            Field("START", 0, width=10, doc="event that starts the cycle counter; the model only stores it"),
            Field("STOP", 16, width=10, doc="event that stops it; the model only stores it"),
        ),
    ),
    Register("PMCAXI_CHAN", 0x1AC, doc="choice of AXI events; the model only stores it"),
    Register("PMEVCNTR%s", 0x300, dim=EVENT_COUNTERS, increment=4, doc="event counter"),
    Register("PMEVTYPER%s", 0x380, dim=EVENT_COUNTERS, increment=4, doc="number of the counted event"),
)

TABLE = RegisterTable(
    name="ethos_u",
    registers=(*_CONTROL, *_MONITOR),
    size_bytes=0x1000,
    doc="Ethos-U55 and U65. Debug registers, the window to internal memory and the copies of the command stream's "
    "registers are missing: an access to them is a bus error.",
)
