/* SPDX-License-Identifier: Apache-2.0 */
/** @file The record of a fault that the start-up code writes, for a debugger or an emulator. */
#ifndef FERRULE_FAULT_H
#define FERRULE_FAULT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The value of `magic` once a fault has been recorded. */
#define FERRULE_FAULT_MAGIC 0x544C4146u /* "FALT" */

/** Registers at the time of a fault; words at fixed offsets, in this order. */
struct ferrule_fault_record {
    uint32_t magic; /* FERRULE_FAULT_MAGIC after a fault, 0 before */
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

/** Filled in on a fault; the core then stays in `ferrule_fault_halt`. */
extern volatile struct ferrule_fault_record ferrule_fault_record;

/** @brief Loop forever; the core stays here after a fault. */
void ferrule_fault_halt(void);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_FAULT_H */
