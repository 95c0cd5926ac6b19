/* SPDX-License-Identifier: Apache-2.0 */
/** @file The system states of ThreadX before it runs, for the host. */
#ifndef FERRULE_FAKE_TX_INITIALIZE_H
#define FERRULE_FAKE_TX_INITIALIZE_H

#define TX_INITIALIZE_IN_PROGRESS ((ULONG)0xF0F0F0F0)

#endif /* FERRULE_FAKE_TX_INITIALIZE_H */
