/* SPDX-License-Identifier: Apache-2.0 */
/** @file The part of CMSIS-Core that the driver of the CMSDK UART calls, on the host. */
#ifndef HOST_DEVICE_H
#define HOST_DEVICE_H

#include <stdint.h>

typedef enum { LINE_0_IRQn = 0, LINE_63_IRQn = 63 } IRQn_Type;

#define __NVIC_PRIO_BITS 3U

void NVIC_EnableIRQ(IRQn_Type line);
void NVIC_DisableIRQ(IRQn_Type line);
void NVIC_SetPendingIRQ(IRQn_Type line);
void NVIC_ClearPendingIRQ(IRQn_Type line);
void NVIC_SetPriority(IRQn_Type line, uint32_t priority);
uint32_t __get_PRIMASK(void);
void __set_PRIMASK(uint32_t masked);
void __disable_irq(void);

#endif /* HOST_DEVICE_H */
