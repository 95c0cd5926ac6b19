/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STAND_IN_DEVICE_H
#define STAND_IN_DEVICE_H

#include <stdint.h>

typedef enum { SysTick_IRQn = -1 } IRQn_Type;

typedef struct {
    volatile uint32_t ICSR;
} SCB_Type;

#define SCB                     ((SCB_Type *)0xE000ED04u)
#define SCB_ICSR_NMIPENDSET_Msk (1ul << 31)

void __DSB(void);
void __ISB(void);
void SystemCoreClockUpdate(void);

#endif /* STAND_IN_DEVICE_H */
