/* SPDX-License-Identifier: Apache-2.0 */

#include "startup.h"

#ifdef FERRULE_WITH_SELF_TEST
#include "ferrule/self_test.h"
#endif

/* System control block (Armv7-M ARM, B3.2.2). */
#define SCB_VTOR  (*(volatile uint32_t *)0xE000ED08u)
#define SCB_CPACR (*(volatile uint32_t *)0xE000ED88u)

/* Memory protection unit of Armv7-M (Armv7-M ARM, B3.5). */
#define MPU_TYPE (*(volatile uint32_t *)0xE000ED90u)
#define MPU_CTRL (*(volatile uint32_t *)0xE000ED94u)
#define MPU_RNR  (*(volatile uint32_t *)0xE000ED98u)
#define MPU_RBAR (*(volatile uint32_t *)0xE000ED9Cu)
#define MPU_RASR (*(volatile uint32_t *)0xE000EDA0u)

#define CPACR_FPU_FULL_ACCESS (0xFu << 20)
#define MPU_TYPE_DREGION      (0xFFu << 8)
#define MPU_CTRL_ENABLE       (1u << 0)
#define MPU_CTRL_PRIVDEFENA   (1u << 2) /* the other addresses stay as they are without the MPU */
#define MPU_RASR_ENABLE       (1u << 0)
#define MPU_RASR_SIZE         1 /* position of the binary logarithm of the size, less 1 */
#define MPU_RASR_XN           (1u << 28)

#ifdef FERRULE_CACHE_LINE
/* The data cache (Armv7-M ARM, B3.2.2 and B4.8; Armv8-M ARM, D1.2). */
#define SCB_CCR    (*(volatile uint32_t *)0xE000ED14u)
#define SCB_CLIDR  (*(volatile uint32_t *)0xE000ED78u)
#define SCB_CCSIDR (*(volatile uint32_t *)0xE000ED80u)
#define SCB_CSSELR (*(volatile uint32_t *)0xE000ED84u)
#define SCB_DCISW  (*(volatile uint32_t *)0xE000EF60u)

#define CCR_DC              (1u << 16)
#define CLIDR_CTYPE1        0x7u
#define CLIDR_CTYPE1_DATA   2u /* this and greater values: there is a data cache */
#define CCSIDR_SETS(value)  ((value) >> 13 & 0x7FFFu) /* less 1, as the next */
#define CCSIDR_WAYS(value)  ((value) >> 3 & 0x3FFu)
#define CCSIDR_SHIFT(value) (((value) & 0x7u) + 4u) /* binary logarithm of a line's bytes */
#endif

/* Makes an overflow of the stack fault at once, unless the core has no MPU or the linker script
 * defines no guard. */
static inline void guard_stack(void)
{
#if defined(__ARM_FEATURE_CMSE)
    __asm__ volatile("msr msplim, %0" : : "r"(ferrule_stack_limit));
#else
    const uint32_t log2_bytes = (uint32_t)ferrule_stack_guard_log2;
    if ((MPU_TYPE & MPU_TYPE_DREGION) != 0 && log2_bytes != 0) {
        MPU_RNR = 0;
        MPU_RBAR = (uint32_t)ferrule_stack_guard;
        MPU_RASR = MPU_RASR_XN | (log2_bytes - 1u) << MPU_RASR_SIZE | MPU_RASR_ENABLE;
        MPU_CTRL = MPU_CTRL_PRIVDEFENA | MPU_CTRL_ENABLE;
    }
#endif
}

#ifdef FERRULE_CACHE_LINE
/* Drops what the cache holds, which is arbitrary at power-up, and switches it on. A cache that a
 * boot loader has switched on stays as it is, since it may hold data. */
static inline void enable_data_cache(void)
{
    if ((SCB_CLIDR & CLIDR_CTYPE1) < CLIDR_CTYPE1_DATA || (SCB_CCR & CCR_DC) != 0) {
        return;
    }
    SCB_CSSELR = 0; /* the data cache of level 1 */
    __asm__ volatile("dsb" : : : "memory");
    const uint32_t size = SCB_CCSIDR;
    const uint32_t last_way = CCSIDR_WAYS(size);
    const uint32_t way_shift = last_way == 0 ? 0 : (uint32_t)__builtin_clz(last_way);
    for (uint32_t set = 0; set <= CCSIDR_SETS(size); set++) {
        for (uint32_t way = 0; way <= last_way; way++) {
            SCB_DCISW = set << CCSIDR_SHIFT(size) | way << way_shift;
        }
    }
    __asm__ volatile("dsb" : : : "memory");
    SCB_CCR |= CCR_DC;
}
#endif

/* Separate from ferrule_reset, so that ferrule_reset does not use the FPU before it is enabled. */
__attribute__((noinline, noreturn)) static void start(void)
{
    const uint32_t *from = ferrule_data_load;
    for (uint32_t *to = ferrule_data_start; (uintptr_t)to < (uintptr_t)ferrule_data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = ferrule_bss_start; (uintptr_t)to < (uintptr_t)ferrule_bss_end; to++) {
        *to = 0;
    }

#ifdef FERRULE_WITH_SELF_TEST
    (void)ferrule_self_test(); /* the program asks for the result, and so does a host */
#endif
    (void)main(); /* a firmware has no caller to report to */
    for (;;) {
        ferrule_exit_halt();
    }
}

void ferrule_reset(void)
{
    guard_stack();
    SCB_VTOR = (uint32_t)ferrule_vectors;
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    SCB_CPACR |= CPACR_FPU_FULL_ACCESS;
#endif
#ifdef FERRULE_CACHE_LINE
    enable_data_cache();
#endif
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    start();
}

__attribute__((noinline)) void ferrule_exit_halt(void)
{
    __asm__ volatile("" : : : "memory");
    for (;;) {
        __asm__ volatile("wfi");
    }
}
