/* SPDX-License-Identifier: Apache-2.0 */
/** @file The M profile of the Arm architecture, Armv6-M to Armv8.1-M. */
#ifndef FERRULE_CORE_CORTEX_M_H
#define FERRULE_CORE_CORTEX_M_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __ELF__
/** Objects may be placed in sections by their names. */
#define FERRULE_CORE_HAS_SECTIONS
#endif

#ifndef FERRULE_CORE_READ
/** Accesses to the core's registers; a test defines its own. */
#define FERRULE_CORE_READ(address)         (*(const volatile uint32_t *)(uintptr_t)(address))
#define FERRULE_CORE_WRITE(address, value) (*(volatile uint32_t *)(uintptr_t)(address) = (value))
#endif

/* Armv7-M Architecture Reference Manual (DDI 0403E), B3.3 SysTick, B3.2.4 ICSR, C1.6.5 DEMCR, C1.8
 * DWT, B3.4 NVIC, B3.2.2 cache maintenance; Armv8-M ARM, D1.2. */
#define FERRULE_CORE_SYST_CSR    0xE000E010u
#define FERRULE_CORE_SYST_RVR    0xE000E014u
#define FERRULE_CORE_SYST_CVR    0xE000E018u
#define FERRULE_CORE_ICSR        0xE000ED04u
#define FERRULE_CORE_PENDSTSET   (1u << 26)
#define FERRULE_CORE_DEMCR       0xE000EDFCu
#define FERRULE_CORE_DWT_CTRL    0xE0001000u
#define FERRULE_CORE_DWT_CYCCNT  0xE0001004u
#define FERRULE_CORE_DWT_LAR     0xE0001FB0u
#define FERRULE_CORE_SYST_START  0x5u /* ENABLE, CLKSOURCE; no interrupt */
#define FERRULE_CORE_COUNTFLAG   (1u << 16)
#define FERRULE_CORE_SYST_PERIOD (1u << 24)
#define FERRULE_CORE_TRCENA      (1u << 24)
#define FERRULE_CORE_CYCCNTENA   1u
#define FERRULE_CORE_UNLOCK   0xC5ACCE55u /* Cortex-M7 locks the DWT at reset; others ignore it */
#define FERRULE_CORE_ISER     0xE000E100u
#define FERRULE_CORE_ICER     0xE000E180u
#define FERRULE_CORE_IPR      0xE000E400u
#define FERRULE_CORE_DCCMVAC  0xE000EF68u /* cleans the line of an address */
#define FERRULE_CORE_DCCIMVAC 0xE000EF70u /* cleans it, and drops it */

/** @brief Complete all earlier memory accesses before any later one, as seen by every bus master.
 */
static inline void ferrule_core_barrier(void)
{
    __asm__ volatile("dsb" : : : "memory");
}

/** @brief Return the stack pointer. */
static inline uintptr_t ferrule_core_stack_pointer(void)
{
    uintptr_t pointer;
    __asm__ volatile("mov %0, sp" : "=r"(pointer));
    return pointer;
}

/** @brief Return whether this is an exception or interrupt handler. */
static inline bool ferrule_core_in_interrupt(void)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number != 0;
}

/** @brief Mask interrupts, and return the argument for ferrule_core_unmask(). */
static inline uint32_t ferrule_core_mask(void)
{
    uint32_t masked;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(masked) : : "memory");
    return masked;
}

/** @brief Restore the state from before ferrule_core_mask(). */
static inline void ferrule_core_unmask(uint32_t masked)
{
    __asm__ volatile("msr primask, %0" : : "r"(masked) : "memory");
}

/** @brief Sleep until an interrupt is pending, then unmask interrupts. */
static inline void ferrule_core_sleep(uint32_t masked)
{
    __asm__ volatile("dsb\n\twfi\n\tmsr primask, %0\n\tisb" : : "r"(masked) : "memory");
}

/** @brief Enable an interrupt. */
static inline void ferrule_core_enable(uint32_t line)
{
    FERRULE_CORE_WRITE(FERRULE_CORE_ISER + 4u * (line / 32u), 1u << (line % 32u));
}

/** @brief Disable an interrupt. */
static inline void ferrule_core_disable(uint32_t line)
{
    FERRULE_CORE_WRITE(FERRULE_CORE_ICER + 4u * (line / 32u), 1u << (line % 32u));
}

/** @brief Give an interrupt the least urgent priority. */
static inline void ferrule_core_lower(uint32_t line)
{
    /* Armv6-M allows words alone */
    const uintptr_t word = FERRULE_CORE_IPR + 4u * (line / 4u);

    FERRULE_CORE_WRITE(word, FERRULE_CORE_READ(word) | 0xFFu << (line % 4u * 8u));
}

/** SysTick as a kernel's tick. */
struct ferrule_core_tick {
    uint32_t period; /* cycles of a tick; 0 if another timer ticks */
    uint32_t passed; /* cycles since the last tick; exceed a period while the next one is pending */
};

/** @brief Read SysTick. Called with the tick masked. */
static inline struct ferrule_core_tick ferrule_core_read_tick(void)
{
    struct ferrule_core_tick found = {0, 0};
    const volatile uint32_t *const syst =
        (const volatile uint32_t *)FERRULE_CORE_SYST_CSR; /* CSR RVR CVR */
    const uint32_t period = (syst[1] & 0xFFFFFFu) + 1u;
    uint32_t left = syst[2] & 0xFFFFFFu;

    if ((syst[0] & 1u) == 0u) {
        return found;
    }
    if ((FERRULE_CORE_READ(FERRULE_CORE_ICSR) & FERRULE_CORE_PENDSTSET) != 0u) {
        left = syst[2] & 0xFFFFFFu;
        found.passed = period;
    }
    found.passed += left == 0u ? 0u : period - left; /* at 0, the next period has begun */
    found.period = period;
    return found;
}

/** @brief Start the counter of core cycles, CYCCNT; false if the core has none. */
static inline bool ferrule_core_cycles_start(void)
{
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
    return false; /* Armv6-M has no cycle counter, and only a debugger may access its DWT */
#else
    FERRULE_CORE_WRITE(FERRULE_CORE_DEMCR,
                       FERRULE_CORE_READ(FERRULE_CORE_DEMCR) | FERRULE_CORE_TRCENA);
    FERRULE_CORE_WRITE(FERRULE_CORE_DWT_LAR, FERRULE_CORE_UNLOCK);
    FERRULE_CORE_WRITE(FERRULE_CORE_DWT_CTRL,
                       FERRULE_CORE_READ(FERRULE_CORE_DWT_CTRL) | FERRULE_CORE_CYCCNTENA);
    return true;
#endif
}

/** @brief Return the counter of core cycles; it wraps at 2^32. Emulators count instructions. */
static inline uint32_t ferrule_core_cycles(void)
{
    return FERRULE_CORE_READ(FERRULE_CORE_DWT_CYCCNT);
}

/** @brief Start SysTick as a counter of 24 bits at the core's clock, without an interrupt. */
static inline void ferrule_core_ticks_start(void)
{
    FERRULE_CORE_WRITE(FERRULE_CORE_SYST_RVR, FERRULE_CORE_SYST_PERIOD - 1u);
    FERRULE_CORE_WRITE(FERRULE_CORE_SYST_CVR, 0u);
    FERRULE_CORE_WRITE(FERRULE_CORE_SYST_CSR, FERRULE_CORE_SYST_START);
}

/** @brief Return SysTick's value. */
static inline uint32_t ferrule_core_ticks(void)
{
    return FERRULE_CORE_READ(FERRULE_CORE_SYST_CVR);
}

/** @brief Return the ticks since the last call, of which SysTick's value then was `*last`. */
static inline uint32_t ferrule_core_ticks_step(uint32_t *last)
{
    const uint32_t flags = FERRULE_CORE_READ(FERRULE_CORE_SYST_CSR); /* clears COUNTFLAG */
    const uint32_t now = FERRULE_CORE_READ(FERRULE_CORE_SYST_CVR);
    uint32_t step = (*last - now) & (FERRULE_CORE_SYST_PERIOD - 1u);
    if ((flags & FERRULE_CORE_COUNTFLAG) != 0u && now <= *last) {
        step += FERRULE_CORE_SYST_PERIOD; /* wrapped at 0, and counted down to `last` again */
    }
    *last = now;
    return step;
}

/** @brief Let the next instructions see what the ones before have done to the core's state. */
static inline void ferrule_core_synchronise(void)
{
#ifdef __ARM_ARCH_PROFILE /* not where a test of the registers runs on its host */
    __asm__ volatile("isb" : : : "memory");
#endif
}

#ifdef FERRULE_CACHE_LINE
/** @brief Write to memory what the data cache holds of a range, or else also remove it there. */
static inline void ferrule_core_cache_maintain(uintptr_t start, size_t bytes, bool removes)
{
    const uintptr_t action = removes ? FERRULE_CORE_DCCIMVAC : FERRULE_CORE_DCCMVAC;
    const uintptr_t end = start + bytes;

    for (uintptr_t line = start & ~(uintptr_t)(FERRULE_CACHE_LINE - 1u); line < end;
         line += FERRULE_CACHE_LINE) {
        FERRULE_CORE_WRITE(action, (uint32_t)line);
    }
}
#endif

/** Registers at the time of a fault; words at fixed offsets, in this order. */
struct ferrule_fault_record {
    uint32_t magic; /* FERRULE_FAULT_MAGIC (fault.h) after a fault, 0 before */
    uint32_t
        exception; /* exception number (IPSR): 3 HardFault, 4 MemManage, 5 BusFault, 6 UsageFault */
    uint32_t r0;   /* r0 to psr: as stacked by the core, 0 if frame_valid is 0 */
    uint32_t r1;
    uint32_t r2;
    uint32_t r3;
    uint32_t r12;
    uint32_t lr;
    uint32_t pc;
    uint32_t psr;
    uint32_t sp;          /* stack pointer at the fault, below the stacked frame */
    uint32_t exc_return;  /* link register on entry */
    uint32_t cfsr;        /* configurable fault status */
    uint32_t hfsr;        /* HardFault status */
    uint32_t mmfar;       /* address of a MemManage fault, if CFSR marks it valid */
    uint32_t bfar;        /* address of a bus fault, if CFSR marks it valid */
    uint32_t frame_valid; /* 0: the stack pointer was outside the stack, so no frame was read */
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_CORE_CORTEX_M_H */
