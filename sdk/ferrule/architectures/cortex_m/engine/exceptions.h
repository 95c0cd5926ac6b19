/* SPDX-License-Identifier: Apache-2.0 */
/* Exception entry, exception return and faults of a core (Armv7-M ARM, B1.5). */
#ifndef FERRULE_EMULATION_EXCEPTIONS_H
#define FERRULE_EMULATION_EXCEPTIONS_H

#include "cortex_m.h"

/* Bits of CFSR (Armv7-M ARM, B3.2.15; Armv8-M ARM, D1.2.38). */
#define FERRULE_CFSR_IACCVIOL   (1u << 0)
#define FERRULE_CFSR_DACCVIOL   (1u << 1)
#define FERRULE_CFSR_MMARVALID  (1u << 7)
#define FERRULE_CFSR_IBUSERR    (1u << 8)
#define FERRULE_CFSR_PRECISERR  (1u << 9)
#define FERRULE_CFSR_UNSTKERR   (1u << 11)
#define FERRULE_CFSR_STKERR     (1u << 12)
#define FERRULE_CFSR_BFARVALID  (1u << 15)
#define FERRULE_CFSR_UNDEFINSTR (1u << 16)
#define FERRULE_CFSR_INVSTATE   (1u << 17)
#define FERRULE_CFSR_INVPC      (1u << 18)
#define FERRULE_CFSR_NOCP       (1u << 19)
#define FERRULE_CFSR_STKOF      (1u << 20)
#define FERRULE_CFSR_UNALIGNED  (1u << 24)

#define FERRULE_HFSR_VECTTBL  (1u << 1)
#define FERRULE_HFSR_FORCED   (1u << 30)
#define FERRULE_HFSR_DEBUGEVT (1u << 31)

/* Takes a pending exception: saves the registers and enters its handler. */
void ferrule_exception_enter(struct ferrule_core *core, uint32_t exception);

/* Performs the exception return that EXC_RETURN in the program counter requests. */
void ferrule_exception_return(struct ferrule_core *core, uint32_t exc_return);

/* Makes a synchronous exception pending, or HardFault if it may not run; stops the guest if neither
 * may run. */
void ferrule_exception_raise(struct ferrule_core *core, uint32_t exception);

/* As above for a fault, which also sets status bits and is recorded for the host. */
void ferrule_exception_fault(struct ferrule_core *core, uint32_t exception, uint32_t status,
                             uint32_t hard_status);

#endif
