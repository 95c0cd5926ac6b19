/* SPDX-License-Identifier: Apache-2.0 */
/** @file The record of a fault that the start-up code writes, for a debugger or an emulator. */
#ifndef FERRULE_FAULT_H
#define FERRULE_FAULT_H

#include <stdint.h>

#include "ferrule/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The value of `magic` once a fault has been recorded. */
#define FERRULE_FAULT_MAGIC 0x544C4146u /* "FALT" */

/** `struct ferrule_fault_record`, which each architecture defines in its header in ferrule/core,
 * begins with `magic`. Filled in on a fault; the core then stays in `ferrule_fault_halt`. */
extern volatile struct ferrule_fault_record ferrule_fault_record;

/** @brief Loop forever; the core stays here after a fault. */
void ferrule_fault_halt(void);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_FAULT_H */
