/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>

#include "ferrule/fault.h"
#include "startup.h"

/* System control block (Armv7-M ARM, B3.2.2). */
#define SCB_CFSR  (*(volatile uint32_t *)0xE000ED28u)
#define SCB_HFSR  (*(volatile uint32_t *)0xE000ED2Cu)
#define SCB_MMFAR (*(volatile uint32_t *)0xE000ED34u)
#define SCB_BFAR  (*(volatile uint32_t *)0xE000ED38u)

#define FRAME_BYTES 32u

volatile struct ferrule_fault_record ferrule_fault_record;

/* The fault may be a stack overflow, so the handler has its own stack. */
extern uint64_t ferrule_fault_stack[32];
uint64_t ferrule_fault_stack[32];

void ferrule_fault_store(const uint32_t *frame, uint32_t exc_return);

__attribute__((naked)) void ferrule_fault_entry(void)
{
#if __ARM_ARCH_ISA_THUMB == 1              /* Armv6-M */
    __asm__ volatile(".syntax unified\n\t" /* GCC has the older syntax for these cores */
                     "mov r1, lr\n\t"
                     "mrs r0, msp\n\t"
                     "lsrs r2, r1, #3\n\t" /* bit 2 */
                     "bcc 1f\n\t"
                     "mrs r0, psp\n\t"
                     "1:\n\t"
                     "ldr r2, 2f\n\t"
                     "mov sp, r2\n\t"
                     "bl ferrule_fault_store\n\t" /* a short branch may not reach it */
                     ".balign 4\n\t"
                     "2: .word ferrule_fault_stack + 256\n\t");
#else
    __asm__ volatile("tst lr, #4\n\t"
                     "ite eq\n\t"
                     "mrseq r0, msp\n\t"
                     "mrsne r0, psp\n\t"
                     "mov r1, lr\n\t"
#if defined(__ARM_FEATURE_CMSE)
                     "movs r2, #0\n\t"
                     "msr msplim, r2\n\t"
#endif
                     "movw r2, #:lower16:ferrule_fault_stack\n\t"
                     "movt r2, #:upper16:ferrule_fault_stack\n\t"
                     "add r2, r2, #256\n\t"
                     "mov sp, r2\n\t"
                     "b ferrule_fault_store\n\t");
#endif
}

__attribute__((used)) void ferrule_fault_store(const uint32_t *frame, uint32_t exc_return)
{
    volatile struct ferrule_fault_record *record = &ferrule_fault_record;
    uint32_t sp = (uint32_t)frame;
    uint32_t room = (uint32_t)ferrule_stack_top - sp;
    bool readable = sp >= (uint32_t)ferrule_stack_limit && sp <= (uint32_t)ferrule_stack_top &&
                    room >= FRAME_BYTES;
    uint32_t exception;

    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    record->exception = exception;
    record->frame_valid = readable ? 1u : 0u;
    record->r0 = readable ? frame[0] : 0;
    record->r1 = readable ? frame[1] : 0;
    record->r2 = readable ? frame[2] : 0;
    record->r3 = readable ? frame[3] : 0;
    record->r12 = readable ? frame[4] : 0;
    record->lr = readable ? frame[5] : 0;
    record->pc = readable ? frame[6] : 0;
    record->psr = readable ? frame[7] : 0;
    record->sp = sp;
    record->exc_return = exc_return;
#if __ARM_ARCH_ISA_THUMB == 1 /* Armv6-M has no record of the cause */
    record->cfsr = 0;
    record->hfsr = 0;
    record->mmfar = 0;
    record->bfar = 0;
#else
    record->cfsr = SCB_CFSR;
    record->hfsr = SCB_HFSR;
    record->mmfar = SCB_MMFAR;
    record->bfar = SCB_BFAR;
#endif
    record->magic =
        FERRULE_FAULT_MAGIC; /* last, so that a reader that polls it finds a complete record */
    for (;;) {
        ferrule_fault_halt();
    }
}

__attribute__((noinline)) void ferrule_fault_halt(void)
{
    for (;;) {
        __asm__ volatile("" : : : "memory");
    }
}
