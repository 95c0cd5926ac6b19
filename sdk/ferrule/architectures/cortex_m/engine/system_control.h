/* SPDX-License-Identifier: Apache-2.0 */
/* The registers at 0xE000_E000 (Armv7-M ARM, B3.2; Armv8-M ARM, D1.1). */
#ifndef FERRULE_EMULATION_SYSTEM_CONTROL_H
#define FERRULE_EMULATION_SYSTEM_CONTROL_H

#include "cortex_m.h"

enum {
    FERRULE_SCS_ICTR = 0x004,
    FERRULE_SCS_ACTLR = 0x008,
    FERRULE_SCS_ISER = 0x100,
    FERRULE_SCS_ICER = 0x180,
    FERRULE_SCS_ISPR = 0x200,
    FERRULE_SCS_ICPR = 0x280,
    FERRULE_SCS_IABR = 0x300,
    FERRULE_SCS_ITNS = 0x380,
    FERRULE_SCS_IPR = 0x400,
    FERRULE_SCS_CPUID = 0xD00,
    FERRULE_SCS_ICSR = 0xD04,
    FERRULE_SCS_VTOR = 0xD08,
    FERRULE_SCS_AIRCR = 0xD0C,
    FERRULE_SCS_SCR = 0xD10,
    FERRULE_SCS_CCR = 0xD14,
    FERRULE_SCS_SHPR = 0xD18,
    FERRULE_SCS_SHCSR = 0xD24,
    FERRULE_SCS_CFSR = 0xD28,
    FERRULE_SCS_HFSR = 0xD2C,
    FERRULE_SCS_DFSR = 0xD30,
    FERRULE_SCS_MMFAR = 0xD34,
    FERRULE_SCS_BFAR = 0xD38,
    FERRULE_SCS_CLIDR = 0xD78,
    FERRULE_SCS_CCSIDR = 0xD80,
    FERRULE_SCS_CPACR = 0xD88,
    FERRULE_SCS_MPU_TYPE = 0xD90,
    FERRULE_SCS_MPU_CTRL = 0xD94,
    FERRULE_SCS_MPU_RNR = 0xD98,
    FERRULE_SCS_MPU_RBAR = 0xD9C, /* with RASR or RLAR, and three aliases of both */
    FERRULE_SCS_MPU_END = 0xDBC,
    FERRULE_SCS_DEMCR = 0xDFC,
    FERRULE_SCS_STIR = 0xF00,
    FERRULE_SCS_FPCCR = 0xF34,
    FERRULE_SCS_FPCAR = 0xF38,
    FERRULE_SCS_DCIMVAC = 0xF5C, /* cache maintenance (Armv7-M ARM, B3.2.2) */
    FERRULE_SCS_DCISW = 0xF60,
    FERRULE_SCS_DCCMVAU = 0xF64,
    FERRULE_SCS_DCCMVAC = 0xF68,
    FERRULE_SCS_DCCSW = 0xF6C,
    FERRULE_SCS_DCCIMVAC = 0xF70,
    FERRULE_SCS_DCCISW = 0xF74,
};

/* Callbacks; `core` is the user data given to unicorn. */
uint64_t ferrule_system_control_read(void *engine, uint64_t offset, unsigned bytes, void *core);
void ferrule_system_control_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                                  void *core);

void ferrule_system_control_reset(struct ferrule_core *core, uint32_t cpu_id,
                                  uint32_t vector_table);

#endif
