/* SPDX-License-Identifier: Apache-2.0 */
/* Shared code of this folder's programs: a trace in memory that is sent at the end, handlers,
 * and the registers of the system control space. The traces contain nothing that depends on
 * time. */
#ifndef TRACE_H
#define TRACE_H

#include "guest.h"
#include "startup.h"

#define ICTR  REGISTER(0xE000E004u)
#define CSR   REGISTER(0xE000E010u)
#define RVR   REGISTER(0xE000E014u)
#define CVR   REGISTER(0xE000E018u)
#define ISER  REGISTER(0xE000E100u)
#define ICER  REGISTER(0xE000E180u)
#define ISPR  REGISTER(0xE000E200u)
#define ICPR  REGISTER(0xE000E280u)
#define IABR  REGISTER(0xE000E300u)
#define IPR   ((volatile uint8_t *)0xE000E400u)
#define ICSR  REGISTER(0xE000ED04u)
#define VTOR  REGISTER(0xE000ED08u)
#define AIRCR REGISTER(0xE000ED0Cu)
#define SCR   REGISTER(0xE000ED10u)
#define CCR   REGISTER(0xE000ED14u)
#define SHPR  ((volatile uint8_t *)0xE000ED14u) /* indexed by exception number, from 4 on */
#define SHCSR REGISTER(0xE000ED24u)
#define CFSR  REGISTER(0xE000ED28u)
#define HFSR  REGISTER(0xE000ED2Cu)
#define BFAR  REGISTER(0xE000ED38u)
#define STIR  REGISTER(0xE000EF00u)

#define PEND_NMI     (1u << 31)
#define PEND_PENDSV  (1u << 28)
#define PEND_SYSTICK (1u << 26)

enum {
    NMI = 2,
    HARD_FAULT,
    MEM_MANAGE,
    BUS_FAULT,
    USAGE_FAULT,
    SVCALL = 11,
    PENDSV = 14,
    SYSTICK,
    LINE0
};
enum { VECTORS = 64, TRACE_BYTES = 65536 };

/* Interrupt lines that all of these boards have and no device of theirs drives. */
enum { LINE_A = 26, LINE_B, LINE_C, LINE_D };

static volatile uint32_t vectors[VECTORS] __attribute__((aligned(512)));
static char trace_text[TRACE_BYTES];
static uint32_t trace_length;

static inline void barrier(void)
{
    __asm volatile("dsb\n\tisb" ::: "memory");
}

__attribute__((noinline)) static void say(const char *text)
{
    while (*text != '\0' && trace_length < TRACE_BYTES) {
        trace_text[trace_length++] = *text++;
    }
}

__attribute__((noinline, unused)) static void note(const char *name, uint32_t value)
{
    char digits[] = " 00000000\n";
    for (int i = 8; i > 0; --i, value >>= 4) {
        digits[i] = "0123456789abcdef"[value & 15u];
    }
    say(name);
    say(digits);
}

static void handle(uint32_t exception, void (*handler)(void))
{
    vectors[exception] = (uint32_t)handler;
}

static inline uint32_t ipsr(void)
{
    uint32_t value;
    __asm volatile("mrs %0, ipsr" : "=r"(value)::"memory");
    return value;
}

static inline uint32_t control(void)
{
    uint32_t value;
    __asm volatile("mrs %0, control" : "=r"(value)::"memory");
    return value;
}

static inline void set_control(uint32_t value)
{
    __asm volatile("msr control, %0\n\tisb" ::"r"(value) : "memory");
}

#define SET_MASK(name, value) __asm volatile("msr " #name ", %0\n\tisb" ::"r"(value) : "memory")

/* An assembly handler that calls function(frame, exc_return) and returns to the value it got. */
#define HANDLER_WITH_FRAME(name, function)                                                         \
    __attribute__((naked)) static void name(void)                                                  \
    {                                                                                              \
        __asm volatile("tst lr, #4\n\tite eq\n\tmrseq r0, msp\n\tmrsne r0, psp\n\t"                \
                       "mov r1, lr\n\tpush {r4, lr}\n\tbl " #function "\n\tpop {r4, pc}\n\t");     \
    }

static void begin(void)
{
    for (uint32_t i = 0; i < 16; ++i) {
        vectors[i] = (uint32_t)ferrule_vectors[i].handler;
    }
    for (uint32_t i = 16; i < VECTORS; ++i) {
        vectors[i] = (uint32_t)ferrule_vectors[3].handler;
    }
    VTOR = (uint32_t)vectors;
    barrier();
}

__attribute__((noreturn, unused)) static void end(void)
{
    start_uart();
    for (uint32_t i = 0; i < trace_length; ++i) {
        put((uint8_t)trace_text[i]);
    }
    put('.');
    for (;;) {
        (void)get();
    }
}

#endif
