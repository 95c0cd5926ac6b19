/* SPDX-License-Identifier: Apache-2.0 */
/** @file ThreadX's functions for mutexes without error checking, for the host. */
#ifndef FERRULE_FAKE_TX_MUTEX_H
#define FERRULE_FAKE_TX_MUTEX_H

#include "tx_api.h"

UINT _tx_mutex_delete(TX_MUTEX *mutex);

#endif /* FERRULE_FAKE_TX_MUTEX_H */
