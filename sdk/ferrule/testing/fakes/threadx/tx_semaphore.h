/* SPDX-License-Identifier: Apache-2.0 */
/** @file ThreadX's functions for semaphores without error checking, for the host. */
#ifndef FERRULE_FAKE_TX_SEMAPHORE_H
#define FERRULE_FAKE_TX_SEMAPHORE_H

#include "tx_api.h"

UINT _tx_semaphore_delete(TX_SEMAPHORE *semaphore);

#endif /* FERRULE_FAKE_TX_SEMAPHORE_H */
