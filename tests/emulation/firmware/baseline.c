/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions of Armv6-M, as a trace that contains nothing that depends on time; or, with
 * TEST_FAULT, a misdeed. */
#include <stdint.h>

#include TEST_HEADER
#include "ferrule/platform/interrupt.h"
#include "ferrule/port.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)
#define CONFIG      struct JOIN(TEST_DRIVER, _config)

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CSR               REGISTER(0xE000E010u)
#define RVR               REGISTER(0xE000E014u)
#define CVR               REGISTER(0xE000E018u)
#define ISER              REGISTER(0xE000E100u)
#define ISPR              REGISTER(0xE000E200u)
#define ICPR              REGISTER(0xE000E280u)
#define IPR               ((volatile uint32_t *)0xE000E400u)
#define CPUID             REGISTER(0xE000ED00u)
#define ICSR              REGISTER(0xE000ED04u)
#define CCR               REGISTER(0xE000ED14u)
#define SHPR2             REGISTER(0xE000ED1Cu)
#define SHPR3             REGISTER(0xE000ED20u)
#define CFSR              REGISTER(0xE000ED28u)
#define PEND_PENDSV       (1u << 28)

/* Lines that no device of the board drives. */
enum { LOW = 20, MIDDLE = 21, OTHER = 22, HIGH = 23 };

static const CONFIG uart = {
    .base = TEST_UART,
#ifdef TEST_CLOCK_HZ
    .clock_hz = TEST_CLOCK_HZ,
#endif
    .baud = 115200u,
};
static volatile uint32_t woken;
static uint64_t process_stack[32];

static void note(const char *name, uint32_t value)
{
    while (*name != '\0') {
        JOIN(TEST_DRIVER, _write)((void *)&uart, (uint8_t)*name++);
    }
    for (int32_t shift = 28; shift >= 0; shift -= 4) {
        JOIN(TEST_DRIVER, _write)((void *)&uart, (uint8_t)"0123456789abcdef"[value >> shift & 15u]);
    }
    JOIN(TEST_DRIVER, _write)((void *)&uart, '\n');
}

static void barrier(void)
{
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

static void pend(uint32_t line)
{
    ISPR = 1u << line;
    barrier();
}

void ferrule_interrupt(uint32_t line)
{
    note("enter ", line);
    if (line == LOW) {
        pend(OTHER);
        pend(MIDDLE);
        pend(HIGH);
    } else if (line == MIDDLE) {
        pend(HIGH);
    } else {
        /* the others pend nothing */
    }
    note("leave ", line);
}

void ferrule_svcall_handler(void)
{
    uint32_t psp;
    note("svc ", ICSR & 0x1FFu);
    ICSR = PEND_PENDSV;
    barrier();
    __asm__ volatile("mrs %0, psp" : "=r"(psp));
    note("on process stack ", psp >= (uint32_t)process_stack && psp < (uint32_t)&process_stack[32]);
    note("svc ends ", ICSR & PEND_PENDSV);
}

void ferrule_pendsv_handler(void)
{
    note("pendsv ", ICSR & 0x1FFu);
}

void ferrule_systick_handler(void)
{
    CSR = 0;
    woken = 1;
}

static void trace(void)
{
    note("cpuid ", CPUID);
    CCR = 0;
    note("ccr ", CCR);
    CFSR = 0xFFFFFFFFu;
    note("cfsr ", CFSR);
    IPR[5] = 0xFFFFFFFFu;
    note("ipr ", IPR[5]);
    SHPR2 = 0xFFFFFFFFu;
    SHPR3 = 0xFFFF0000u;
    note("shpr2 ", SHPR2);
    note("shpr3 ", SHPR3);
    SHPR2 = 0x40000000u;
    SHPR3 = 0xC0C00000u;
    IPR[5] = 0x008080C0u; /* HIGH, OTHER, MIDDLE, LOW */
    ISER = 1u << LOW | 1u << MIDDLE | 1u << OTHER | 1u << HIGH;
    pend(LOW);
    __asm__ volatile("cpsid i");
    pend(HIGH);
    pend(LOW);
    note("pending ", ISPR);
    ICPR = 1u << LOW;
    __asm__ volatile("cpsie i");
    barrier();
    __asm__ volatile("svc 5");
    __asm__ volatile("msr psp, %0\n\tmsr control, %1\n\tisb\n\tsvc 6\n\tmsr control, %2\n\tisb"
                     :
                     : "r"(&process_stack[32]), "r"(2), "r"(0)
                     : "memory");
    RVR = 1000u;
    CVR = 0u;
    CSR = 7u;
    while (woken == 0u) {
        __asm__ volatile("wfi");
    }
    note("woken ", woken);
}

#ifdef TEST_FAULT
static volatile uint32_t words[4];

static void misdeed(void)
{
    const uint32_t odd = (uint32_t)words + 2u;
    __asm__ volatile(".syntax unified\n\t"
                     "mov r1, %0\n\t"
                     "ldr r0, 9f\n\t"
                     "b 8f\n\t"
                     ".balign 4\n\t"
                     "9: .word 0x600D600D\n\t"
                     "8:\n\t" TEST_FAULT
                     :
                     : "r"(odd)
                     : "r0", "r1", "r2", "memory");
}
#endif

int main(void)
{
#ifdef TEST_PINS
    REGISTER(TEST_UART + 0x50Cu) = 24u; /* PSELTXD */
    REGISTER(TEST_UART + 0x514u) = 25u; /* PSELRXD */
#endif
    (void)JOIN(TEST_DRIVER, _init)(&uart);
#ifdef TEST_FAULT
    misdeed();
#endif
    trace();
    JOIN(TEST_DRIVER, _write)((void *)&uart, '.');
    for (;;) {
    }
}
