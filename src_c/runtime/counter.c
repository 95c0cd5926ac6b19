/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdint.h>

#include "ferrule/counter.h"
#include "ferrule/port.h"

/* Armv7-M Architecture Reference Manual (DDI 0403E), B3.3 SysTick, C1.6.5 DEMCR, C1.8 DWT. */
#define SYST_CSR  0xE000E010u
#define SYST_RVR  0xE000E014u
#define SYST_CVR  0xE000E018u
#define DEMCR     0xE000EDFCu
#define DWT_CTRL  0xE0001000u
#define DWT_CYCNT 0xE0001004u
#define DWT_LAR   0xE0001FB0u

#define CSR_ENABLE_CORE_CLOCK 0x5u /* ENABLE, CLKSOURCE; no interrupt */
#define CSR_COUNTFLAG         (1u << 16)
#define SYSTICK_PERIOD        (1u << 24)
#define SYSTICK_MASK          (SYSTICK_PERIOD - 1u)
#define DEMCR_TRCENA          (1u << 24)
#define CTRL_CYCCNTENA        1u
#define LAR_UNLOCK            0xC5ACCE55u /* Cortex-M7 locks the DWT at reset; others ignore this */

/* Cores and emulators without a cycle counter read CYCCNT as a constant, so the counter is accepted
 * only if it changes. */
static bool dwt_counts(void)
{
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
    return false; /* Armv6-M has no cycle counter, and only a debugger may access its DWT */
#else
    ferrule_mmio_write32(DEMCR, ferrule_mmio_read32(DEMCR) | DEMCR_TRCENA);
    ferrule_mmio_write32(DWT_LAR, LAR_UNLOCK);
    ferrule_mmio_write32(DWT_CTRL, ferrule_mmio_read32(DWT_CTRL) | CTRL_CYCCNTENA);
    const uint32_t first = ferrule_mmio_read32(DWT_CYCNT);
    for (uint32_t attempt = 0; attempt < 16u; attempt++) {
        if (ferrule_mmio_read32(DWT_CYCNT) != first) {
            return true;
        }
    }
    return false;
#endif
}

#ifdef FERRULE_PORT_HAS_CYCLES
/* The port's clock owns SysTick. */
static bool systick_counts(void)
{
    const uint32_t first = ferrule_port_cycles();
    for (uint32_t attempt = 0; attempt < 4096u; attempt++) {
        if (ferrule_port_cycles() != first) {
            return true;
        }
    }
    return false;
}
#else
/* Emulators may run SysTick in steps of tens of instructions: try long enough. */
static bool systick_counts(void)
{
    ferrule_mmio_write32(SYST_RVR, SYSTICK_MASK);
    ferrule_mmio_write32(SYST_CVR, 0u);
    ferrule_mmio_write32(SYST_CSR, CSR_ENABLE_CORE_CLOCK);
    const uint32_t first = ferrule_mmio_read32(SYST_CVR);
    for (uint32_t attempt = 0; attempt < 4096u; attempt++) {
        if (ferrule_mmio_read32(SYST_CVR) != first) {
            return true;
        }
    }
    return false;
}
#endif

void ferrule_counter_start(struct ferrule_counter *counter)
{
    if (dwt_counts()) {
        counter->source = FERRULE_COUNTER_DWT;
    } else if (systick_counts()) {
        counter->source = FERRULE_COUNTER_SYSTICK;
    } else {
        counter->source = FERRULE_COUNTER_NONE;
    }
    ferrule_counter_reset(counter);
}

void ferrule_counter_reset(struct ferrule_counter *counter)
{
    (void)ferrule_counter_read(counter); /* only for its effect on `last` and COUNTFLAG */
    counter->elapsed = 0;
}

#ifdef FERRULE_PORT_HAS_CYCLES
static uint32_t systick_step(struct ferrule_counter *counter)
{
    const uint32_t now = ferrule_port_cycles();
    const uint32_t step = now - counter->last;
    counter->last = now;
    return step;
}
#else
static uint32_t systick_step(struct ferrule_counter *counter)
{
    const uint32_t flags = ferrule_mmio_read32(SYST_CSR); /* reading clears COUNTFLAG */
    const uint32_t now = ferrule_mmio_read32(SYST_CVR);
    uint32_t step = (counter->last - now) & SYSTICK_MASK;
    if ((flags & CSR_COUNTFLAG) != 0u && now <= counter->last) {
        step += SYSTICK_PERIOD; /* it has wrapped at 0 and counted down to `last` again */
    }
    counter->last = now;
    return step;
}
#endif

uint64_t ferrule_counter_read(struct ferrule_counter *counter)
{
    if (counter->source == FERRULE_COUNTER_DWT) {
        const uint32_t now = ferrule_mmio_read32(DWT_CYCNT);
        counter->elapsed += now - counter->last;
        counter->last = now;
    } else if (counter->source == FERRULE_COUNTER_SYSTICK) {
        counter->elapsed += systick_step(counter);
    } else {
        /* nothing counts */
    }
    return counter->elapsed;
}
