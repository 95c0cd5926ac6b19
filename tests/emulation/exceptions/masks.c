/* SPDX-License-Identifier: Apache-2.0 */
/* PRIMASK, BASEPRI and FAULTMASK hold exceptions back; pending ones are taken when the mask
 * falls. */
#include "trace.h"

static uint32_t mask(uint32_t which)
{
    uint32_t value = 0;
    switch (which) {
    case 0:
        __asm volatile("mrs %0, primask" : "=r"(value));
        break;
    case 1:
        __asm volatile("mrs %0, basepri" : "=r"(value));
        break;
    default:
        __asm volatile("mrs %0, faultmask" : "=r"(value));
        break;
    }
    return value;
}

static void masks(void)
{
    note("primask", mask(0));
    note("basepri", mask(1));
    note("faultmask", mask(2));
}

static void line(void)
{
    note("line", ipsr());
    masks();
}

static void pendsv(void)
{
    note("pendsv", ipsr());
    masks();
}

static void nmi(void)
{
    note("nmi", ipsr());
    masks();
}

static void masking_line(void)
{
    note("masking line", ipsr());
    SET_MASK(faultmask, 1); /* cleared by the return */
    masks();
}

static void both(void)
{
    ISPR = 1u << LINE_A | 1u << LINE_B;
    ICSR = PEND_PENDSV;
    barrier();
}

int main(void)
{
    begin();
    handle(LINE0 + LINE_A, line);
    handle(LINE0 + LINE_B, line);
    handle(LINE0 + LINE_C, masking_line);
    handle(PENDSV, pendsv);
    handle(NMI, nmi);
    IPR[LINE_A] = 0x40;
    IPR[LINE_B] = 0x80;
    IPR[LINE_C] = 0x60;
    SHPR[PENDSV] = 0xFF;
    ISER = 1u << LINE_A | 1u << LINE_B | 1u << LINE_C;

    say("primask\n");
    __asm volatile("cpsid i" ::: "memory");
    both();
    note("icsr", ICSR);
    masks();
    __asm volatile("cpsie i\n\tisb" ::: "memory");
    masks();

    say("primask for a long time\n");
    __asm volatile("cpsid i" ::: "memory");
    both();
    for (volatile uint32_t i = 0; i < 1000; ++i) {
    }
    say("still held\n");
    __asm volatile("cpsie i\n\tisb" ::: "memory");

    say("basepri 0x80\n");
    SET_MASK(basepri, 0x80);
    both();
    note("pending", ISPR);
    masks();
    say("basepri_max raises only\n");
    SET_MASK(basepri_max, 0xC0);
    masks();
    SET_MASK(basepri_max, 0x40);
    masks();
    ISPR = 1u << LINE_A;
    barrier();
    say("basepri 0x81\n");
    SET_MASK(basepri, 0x81);
    say("basepri 0\n");
    SET_MASK(basepri, 0);

    say("faultmask\n");
    __asm volatile("cpsid f" ::: "memory");
    both();
    ICSR = PEND_NMI;
    barrier();
    masks();
    __asm volatile("cpsie f\n\tisb" ::: "memory");
    masks();

    say("faultmask in a handler\n");
    ISPR = 1u << LINE_C;
    barrier();
    masks();

    say("pending and withdrawn\n");
    __asm volatile("cpsid i" ::: "memory");
    ICSR = PEND_PENDSV | PEND_SYSTICK;
    note("icsr", ICSR);
    ICSR = 1u << 27 | 1u << 25;
    note("icsr", ICSR);
    __asm volatile("cpsie i\n\tisb" ::: "memory");
    say("end\n");
    end();
}
