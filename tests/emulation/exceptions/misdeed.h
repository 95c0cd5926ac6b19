/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that fault, and a handler that notes the fault and resumes after it. */
#ifndef MISDEED_H
#define MISDEED_H

#include "trace.h"

static volatile uint32_t resume_at;

__attribute__((used)) static void faulted(uint32_t *frame, uint32_t exc_return)
{
    const uint32_t status = CFSR;
    note("fault", ipsr());
    note("exc_return", exc_return);
    note("cfsr", status);
    note("hfsr", HFSR & 2u);
    note("escalated", (HFSR & 3u << 30) != 0); /* qemu treats a breakpoint like any other fault */
    if ((status & 1u << 15) != 0) {
        note("bfar", BFAR);
    }
    note("shcsr", SHCSR);
    if ((status & (1u << 12 | 1u << 11)) == 0) { /* a frame was saved */
        note("pc", frame[6]);
        note("thumb", frame[7] >> 24 & 1u);
        frame[6] = resume_at;
        frame[7] = (frame[7] & ~0x0600FC00u) | 1u << 24;
    }
    CFSR = status;
    HFSR = HFSR;
    note("cleared", CFSR | HFSR);
}
HANDLER_WITH_FRAME(fault, faulted)

/* Run an instruction that faults; the handler resumes after it. */
#define MISDEED(text, ...)                                                                         \
    __asm volatile("ldr r4, =resume_at\n\tldr r5, =1f + 1\n\tstr r5, [r4]\n\t" text "\n\t"         \
                   "b 1f\n\t.ltorg\n\t.p2align 1\n\t1:"                                            \
                   :                                                                               \
                   : __VA_ARGS__                                                                   \
                   : "r0", "r1", "r2", "r3", "r4", "r5", "r12", "lr", "cc", "memory")

#endif
