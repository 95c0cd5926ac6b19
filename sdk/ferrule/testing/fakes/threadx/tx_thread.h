/* SPDX-License-Identifier: Apache-2.0 */
/** @file The system state of ThreadX, for the host. */
#ifndef FERRULE_FAKE_TX_THREAD_H
#define FERRULE_FAKE_TX_THREAD_H

#include "tx_api.h"

/** 0 in a thread, the nesting of interrupts in one, and more before the kernel runs. */
ULONG fake_system_state(void);

#define TX_THREAD_GET_SYSTEM_STATE() fake_system_state()

#endif /* FERRULE_FAKE_TX_THREAD_H */
