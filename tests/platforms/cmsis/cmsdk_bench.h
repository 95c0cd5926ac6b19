/* SPDX-License-Identifier: Apache-2.0 */
/** @file Access for Python to two instances of the driver and the interrupt controller's state. */
#ifndef CMSDK_BENCH_H
#define CMSDK_BENCH_H

#include <stdint.h>

#include "Driver_USART.h"

ARM_DRIVER_USART *cmsdk_driver(uint32_t number);
void cmsdk_handle(uint32_t line);

struct cmsdk_line {
    uint32_t enabled;
    uint32_t pending;
    uint32_t priority;
};
struct cmsdk_line *cmsdk_line(uint32_t line);
uint32_t cmsdk_masked(void);
/* Raise the interrupt once, as soon as the driver unmasks interrupts. */
void cmsdk_interrupt_when_unmasked(uint32_t line);

/* ARM_USART_STATUS and similar bit fields as numbers. */
uint32_t cmsdk_status(uint32_t number);
uint32_t cmsdk_capabilities(uint32_t number);
uint32_t cmsdk_modem(uint32_t number);
uint32_t cmsdk_api(uint32_t number);

#endif /* CMSDK_BENCH_H */
