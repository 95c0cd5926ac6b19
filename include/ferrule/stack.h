/* SPDX-License-Identifier: Apache-2.0 */
/** @file Measurement of stack use, by painting the unused part beforehand. */
#ifndef FERRULE_STACK_H
#define FERRULE_STACK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Result of a measurement, in bytes. */
struct ferrule_stack_use {
    uint32_t run_bytes;  /* below the stack pointer of the code that was measured */
    uint32_t peak_bytes; /* below the top of the stack */
    uint32_t
        size_bytes; /* of the whole stack; if the peak equals it, the stack may have overflowed */
};

/** @brief Paint the stack from its limit up to the stack pointer. The thread that owns the stack.
 */
void ferrule_stack_paint(void);

/**
 * @brief Measure the stack used since it was painted. The thread that owns the stack.
 *
 * `from` is the stack pointer where the measured work began.
 */
void ferrule_stack_measure(uintptr_t from, struct ferrule_stack_use *use);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_STACK_H */
