/* SPDX-License-Identifier: Apache-2.0 */
/** @file The C part of the CMSIS adapter's tests: an accelerator, and USARTs made by the macro. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

#include "ferrule/platform/cmsis.h"
#include "ferrule/platform/cmsis_usart.h"

/** The accelerator, whose calls are recorded as acc_Initialize, acc_Uninitialize,
 * acc_PowerControl and acc_GetStatus (result: 1 busy, 2 error). */
const struct ferrule_cmsis_accelerator *bench_accelerator(void);
/** Set the value that GetVersion().api returns from now on. */
void bench_set_api(uint32_t api);

/** The USART on Driver_USART0 or Driver_USART1, at 115200 bits per second. */
struct ferrule_cmsis_usart *bench_usart(uint32_t number);

/** Calls of the USART's transport. */
int32_t bench_write(struct ferrule_cmsis_usart *usart, const uint8_t *data, uint32_t bytes,
                    uint32_t timeout_ms);
int32_t bench_read(struct ferrule_cmsis_usart *usart, uint8_t *data, uint32_t bytes,
                   uint32_t timeout_ms, uint32_t *received);

#endif /* BENCH_H */
