/* SPDX-License-Identifier: Apache-2.0 */
/** @file The USARTs of the CMSIS fakes. They are strict: calls out of order fail, and bytes that
 * arrive while no receive is in progress are lost. */
#ifndef FERRULE_FAKE_CMSIS_H
#define FERRULE_FAKE_CMSIS_H

#include "Driver_USART.h"

enum { FERRULE_FAKE_USARTS = 4 };

extern ARM_DRIVER_USART Driver_USART0;
extern ARM_DRIVER_USART Driver_USART1;
extern ARM_DRIVER_USART Driver_USART2;
extern ARM_DRIVER_USART Driver_USART3;

/** Call the user's SignalEvent, in an interrupt. */
void ferrule_fake_signal(uint32_t number, uint32_t event);
/** Set the version of the API, and whether the asynchronous mode is supported. */
void ferrule_fake_set_usart(uint32_t number, uint32_t api, uint32_t asynchronous);

#endif /* FERRULE_FAKE_CMSIS_H */
