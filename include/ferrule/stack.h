/* SPDX-License-Identifier: Apache-2.0 */
/** @file How much of the stack a piece of work uses, measured by painting the unused part before
 * it. */
#ifndef FERRULE_STACK_H
#define FERRULE_STACK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the last measurement found, in bytes. */
struct ferrule_stack_use {
    uint32_t run_bytes;  /* below the stack pointer of the code that was measured */
    uint32_t peak_bytes; /* below the top of the stack */
    uint32_t size_bytes; /* of the whole stack; a peak as large means that it may have overflowed */
};

/** @brief Paint the stack from its limit up to the stack pointer. The thread that owns the stack.
 */
void ferrule_stack_paint(void);

/**
 * @brief Find how deep the stack was used since it was painted. The thread that owns the stack.
 *
 * `from` is the stack pointer where the measured work began.
 */
void ferrule_stack_measure(uintptr_t from, struct ferrule_stack_use *use);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_STACK_H */
