/* SPDX-License-Identifier: Apache-2.0 */
/** @file Interrupts of devices without an operating system. */
#ifndef FERRULE_PLATFORM_INTERRUPT_H
#define FERRULE_PLATFORM_INTERRUPT_H

#include <stdint.h>

#include "ferrule/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The number of lines in the vector table of interrupt.c. */
#define FERRULE_INTERRUPT_LINES 128u

/** @brief Handle an interrupt; defined by the program. `line` counts from 0. */
void ferrule_interrupt(uint32_t line);

/** @brief Enable an interrupt. Its priority is the reset value, the highest configurable one. */
static inline void ferrule_interrupt_enable(uint32_t line)
{
    ferrule_core_enable(line);
}

/** @brief Disable an interrupt. */
static inline void ferrule_interrupt_disable(uint32_t line)
{
    ferrule_core_disable(line);
}

/** @brief Give an interrupt the least urgent priority, from which every kernel may be called. */
static inline void ferrule_interrupt_lower(uint32_t line)
{
    ferrule_core_lower(line);
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_INTERRUPT_H */
