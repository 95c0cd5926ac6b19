/* SPDX-License-Identifier: Apache-2.0 */
/** @file The record that start-up leaves of a fault, for a debugger or an emulator to read. */
#ifndef FERRULE_FAULT_H
#define FERRULE_FAULT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The value of `magic` once a fault has been recorded. */
#define FERRULE_FAULT_MAGIC 0x544C4146u /* "FALT" */

/** Registers at a fault; words at fixed offsets, in this order. */
struct ferrule_fault_record {
    uint32_t magic; /* FERRULE_FAULT_MAGIC, or 0 while none has happened */
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
    uint32_t sp;         /* stack pointer at the fault, below the stacked frame */
    uint32_t exc_return; /* link register on entry */
    uint32_t cfsr;       /* configurable fault status */
    uint32_t hfsr;       /* HardFault status */
    uint32_t mmfar;      /* address of a MemManage fault, if CFSR says that it is valid */
    uint32_t bfar;       /* address of a bus fault, if CFSR says that it is valid */
    uint32_t
        frame_valid; /* 0: the stack pointer was outside the stack, so there is no frame to read */
};

/** Filled on a fault; the core then stays in `ferrule_fault_halt`. */
extern volatile struct ferrule_fault_record ferrule_fault_record;

/** @brief Where the core stays after a fault. */
void ferrule_fault_halt(void);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_FAULT_H */
