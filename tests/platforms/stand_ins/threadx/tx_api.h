/* SPDX-License-Identifier: Apache-2.0 */
/* What programs call, and adapters do not. */
#include_next <tx_api.h>

#ifndef STAND_IN_TX_API_H
#define STAND_IN_TX_API_H

#define TX_MAX_PRIORITIES 32

UINT tx_thread_delete(TX_THREAD *thread);
VOID tx_kernel_enter(VOID);
VOID tx_application_define(VOID *first_unused_memory);

#endif /* STAND_IN_TX_API_H */
