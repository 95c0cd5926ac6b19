/* SPDX-License-Identifier: Apache-2.0 */
/** @file Interrupts of devices without an operating system, on Armv7-M and Armv8-M mainline. */
#ifndef FERRULE_PLATFORM_INTERRUPT_H
#define FERRULE_PLATFORM_INTERRUPT_H

#include <stdint.h>

#include "ferrule/port.h"

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
    /* NVIC_ISERn, Armv7-M ARM B3.4.4 */
    ferrule_mmio_write32((uintptr_t)(0xE000E100u + 4u * (line / 32u)), 1u << (line % 32u));
}

/** @brief Disable an interrupt. */
static inline void ferrule_interrupt_disable(uint32_t line)
{
    /* NVIC_ICERn, Armv7-M ARM B3.4.5 */
    ferrule_mmio_write32((uintptr_t)(0xE000E180u + 4u * (line / 32u)), 1u << (line % 32u));
}

/** @brief Give an interrupt the least urgent priority, from which every kernel may be called. */
static inline void ferrule_interrupt_lower(uint32_t line)
{
    /* NVIC_IPRn, Armv7-M ARM B3.4.9; Armv6-M allows words alone */
    const uintptr_t word = (uintptr_t)(0xE000E400u + 4u * (line / 4u));

    ferrule_mmio_write32(word, ferrule_mmio_read32(word) | 0xFFu << (line % 4u * 8u));
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_INTERRUPT_H */
