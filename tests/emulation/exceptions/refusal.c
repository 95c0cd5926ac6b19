/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses that the device of test_device.py refuses. The handler reports the fault and resumes
 * after the access, so every such instruction is narrow (2 bytes). */
#include "trace.h"

#define DEVICE      0x4F000000u
#define IT_BITS     0x0600FC00u /* the IT bits of a stacked xPSR */
#define BUSFAULTENA (1u << 17)

static const char *volatile what;

__attribute__((used)) static uint32_t skip(uint32_t *frame, uint32_t exc_return)
{
    say(what);
    note(": cfsr", CFSR);
    trace_length--; /* removes the end of the line */
    note(" bfar", BFAR);
    CFSR = CFSR;
    frame[6] += 2;
    frame[7] &= ~IT_BITS;
    return exc_return;
}

HANDLER_WITH_FRAME(bus_fault, skip)

__attribute__((noinline)) static void store(const char *name, uint32_t address, uint32_t value)
{
    what = name;
    register uint32_t at __asm("r1") = address;
    register uint32_t word __asm("r0") = value;
    __asm volatile("str.n %0, [%1]" ::"l"(word), "l"(at) : "memory");
}

__attribute__((noinline)) static uint32_t load(const char *name, uint32_t address)
{
    what = name;
    register uint32_t at __asm("r1") = address;
    register uint32_t word __asm("r0") = 0;
    __asm volatile("ldr.n %0, [%1]" : "+l"(word) : "l"(at) : "memory");
    return word;
}

__attribute__((noinline)) static void load_byte(const char *name, uint32_t address)
{
    what = name;
    register uint32_t at __asm("r1") = address;
    register uint32_t word __asm("r0") = 0;
    __asm volatile("ldrb.n %0, [%1]" : "+l"(word) : "l"(at) : "memory");
}

__attribute__((noinline)) static void store_if_equal(const char *name, uint32_t address)
{
    what = name;
    register uint32_t at __asm("r1") = address;
    __asm volatile("cmp %0, %0\n\tit eq\n\tstreq.n %0, [%0]" ::"l"(at) : "memory", "cc");
}

int main(void)
{
    begin();
    handle(BUS_FAULT, bus_fault);
    SHCSR |= BUSFAULTENA;
    store("value", DEVICE, 7);
    note("value", load("value", DEVICE));
    note("constant", load("constant", DEVICE + 4));
    store("write of constant", DEVICE + 4, 99);
    (void)load("read of secret", DEVICE + 8);
    load_byte("byte", DEVICE);
    store("nothing there", DEVICE + 0x10, 1);
    store_if_equal("in an it block", DEVICE + 4);
    note("value", load("value", DEVICE));
    end();
}
