# SPDX-License-Identifier: Apache-2.0
"""A small firmware that talks on its console, crashes, exits and sleeps on command; built once per process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from ferrule.testing import build_program

SOURCE = """
#include <stdint.h>
#define REG(address) (*(volatile uint32_t *)(uintptr_t)(address))
enum { DATA = 0x40004000, STATE = 0x40004004, CTRL = 0x40004008, BAUD = 0x40004010 };
int main(void);
extern volatile uint32_t lines;
volatile uint32_t lines;
static void put(char byte)
{
    while ((REG(STATE) & 1u) != 0) {
    }
    REG(DATA) = (uint8_t)byte;
}
static void say(const char *text)
{
    for (; *text != '\\0'; text++) {
        put(*text);
    }
    lines++;
}
static void call(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}
int main(void)
{
    static const uint32_t status[] = {0x20026u, 7u};
    REG(BAUD) = 16;
    REG(CTRL) = 3;
    say("ready\\r\\n");
    for (;;) {
        if ((REG(STATE) & 2u) == 0) {
            continue;
        }
        switch ((char)REG(DATA)) {
        case 'h': say("hello, one\\r\\nhello, two\\r\\n"); break;
        case 'c': REG(0xDEAD0000u) = 1; break;
        case 'e': call(0x20, status); break;
        case 'w': call(0x04, "by semihosting\\r\\n"); break;
        case 'o': call(0x01, "a file"); break;
        case 'b': __asm volatile("bkpt 1"); break;
        case 's': __asm volatile("cpsid i\\n\\twfi"); break;
        case 'f': for (;;) { say("again and again\\r\\n"); }
        default: break;
        }
    }
}
"""


@cache
def talker() -> Path:
    """Return the ELF file for mps2-an386; its folder lasts as long as the process."""
    folder = Path(_folder().name)
    (folder / "talker.c").write_text(SOURCE, encoding="utf-8")
    return build_program([folder / "talker.c"], folder / "build")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ferrule-talker-")
