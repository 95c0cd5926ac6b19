# SPDX-License-Identifier: Apache-2.0
"""What people and C programs read of a register table: its header and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ferrule.devices.registers import Access, Field, Register, RegisterTable
from ferrule.errors import FerruleError
from ferrule.rendering import c_comment, fitted, one_line
from ferrule.rendering.quoting import MARKDOWN

_ACCESS = {
    Access.READ_WRITE: "read and write",
    Access.READ_ONLY: "read only",
    Access.WRITE_ONLY: "write only",
    Access.CLEAR_BY_ONE: "read; a one clears",
    Access.SET_BY_ONE: "read; a one sets",
}
_CLEARS = "a read clears"
_PULSES = "a pulse, reads as zero"


def registers_text(registers: Mapping[str, int]) -> str:
    """Return the registers of a device as `NAME 0x1, ...`."""
    return ", ".join(f"{name} {value:#x}" for name, value in registers.items())


def c_header(table: RegisterTable) -> str:
    """Return a C header for drivers with the offsets, reset values, fields and the values of fields in their places.

    The offset of an array is a macro with the index as its argument.

    Raises:
        FerruleError: two names of the table give the same C name.
    """
    prefix = table.name.upper()
    guard = f"{prefix}_REGISTERS_H"
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/** @file Registers of {table.name}, as offsets in bytes; made from its register table. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f"#define {prefix}_WINDOW_BYTES {table.size_bytes:#x}u",
    ]
    taken: dict[str, str] = {}
    for register in table.registers:
        doc = c_comment(one_line(register.doc))
        lines += ["", f"/* {doc}{'; ' if doc else ''}{_access(register)} */"]
        rows = list(_macros(prefix, register))
        for macro, _ in rows:
            name = macro.partition("(")[0]
            if name in taken:
                raise FerruleError(
                    f"{table.name}.{register.name}: its C name {name} has another meaning in {taken[name]}",
                    hint="rename one of the two",
                )
            taken[name] = register.name
        width = max(len(left) for left, _ in rows)
        lines += [f"#define {left:<{width}} {right}" for left, right in rows]
    return fitted("\n".join([*lines, "", f"#endif /* {guard} */", ""]))


def _access(register: Register) -> str:
    """Return the access to a register and to those of its fields that differ from it."""
    texts = [_ACCESS[register.access]]
    if register.read_clears:
        texts.append(_CLEARS)
    if register.size_bits != 32:
        texts.append(f"{register.size_bits} bits")
    texts += [
        f"{field.name}: {text}"
        for field in register.fields
        if (text := _field_access(field, _ACCESS, _CLEARS, _PULSES))
    ]
    return "; ".join(texts)


def _field_access(field: Field, names: dict[Access, str], clears: str, pulses: str) -> str:
    texts = ((names[field.access] if field.access else "", True), (clears, field.read_clears), (pulses, field.pulses))
    return ", ".join(text for text, holds in texts if text and holds)


def _macros(prefix: str, register: Register) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a register's macros."""
    name = f"{prefix}_{_array_name(register.name)}".upper()
    if register.dim:
        yield f"{name}_COUNT", f"{register.dim}u"
        if register.indices:
            for each in register.elements():
                yield f"{prefix}_{each.name}".upper(), f"{each.offset:#04x}u"
        else:
            yield f"{name}(index)", f"({register.offset:#04x}u + {register.increment:#x}u * (index))"
    else:
        yield name, f"{register.offset:#04x}u"
    if register.reset:
        taken = any(field.name.upper() == "RESET" for field in register.fields)
        yield f"{name}_RESET{'_VALUE' if taken else ''}", f"{register.reset:#x}u"
    for field in register.fields:
        place = f"{name}_{field.name.upper()}"
        if field.width == 1:
            yield place, f"(1u << {field.bit})"
        else:
            yield f"{place}_SHIFT", str(field.bit) + "u"
            yield f"{place}_MASK", f"{field.mask:#x}u"
        for value in field.values:
            yield f"{place}_{value.name.upper()}", f"{value.value << field.bit:#x}u"


def _array_name(name: str) -> str:
    """Return the name of an array without the place of its index: `CH_COUNT` for `CH%s_COUNT`."""
    before, _, after = name.partition("%s")
    return f"{before.rstrip('_')}{after}" if before.rstrip("_") else after.lstrip("_")


def documentation(table: RegisterTable) -> str:
    """Return the registers as a Markdown table."""
    same = all(register.size_bits == 32 for register in table.registers)
    narrow = " Aligned bytes and halfwords of them can be accessed, too." if table.narrow_accesses else ""
    lines = [
        f"## Registers of {table.name}",
        "",
        *([_text(table.doc), ""] if table.doc else []),
        f"{'32 bits each, little-endian' if same else 'Little-endian'}, in a window of {table.size_bytes} bytes."
        f"{narrow} Any other access is a bus error.",
        "",
        "| offset | register | access | after reset | what |",
        "|---|---|---|---|---|",
    ]
    for register in table.registers:
        offset = f"{register.offset:#05x}"
        doc = _text(register.doc)
        if register.dim:
            offset += f" + {register.increment:#x} i"
            indices = ", ".join(register.indices) or f"0 to {register.dim - 1}"
            doc = f"{doc}{' ' if doc else ''}(%s: {indices})"
        access = register.access + (", rc" if register.read_clears else "")
        size = "" if same else f" ({register.size_bits} bits)"
        reset = f"{register.reset:#0{2 + register.size_bits // 4}x}"
        lines.append(f"| {offset} | {register.name}{size} | {access} | {reset} | {doc} |")
        for field in register.fields:
            bits = str(field.bit) if field.width == 1 else f"{field.bit + field.width - 1}:{field.bit}"
            text = f"bits {bits}: {_text(field.doc)}"
            own = _field_access(field, {each: each.value for each in Access}, "rc", "pulse")
            lines.append(f"| | {register.name}.{field.name} | {own}{' ' if own else ''}| | {text} |")
            for value in field.values:
                meaning = f"{value.value}: {_text(value.doc)}" if value.doc else str(value.value)
                lines.append(f"| | {register.name}.{field.name}.{value.name} | | | {meaning} |")
    return "\n".join([*lines, ""])


def _text(text: str) -> str:
    return MARKDOWN.quote(text)
