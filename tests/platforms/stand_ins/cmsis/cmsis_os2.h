/* SPDX-License-Identifier: Apache-2.0 */
/* What programs call, and adapters do not. */
#include_next <cmsis_os2.h>

#ifndef STAND_IN_CMSIS_OS2_H
#define STAND_IN_CMSIS_OS2_H

osStatus_t osKernelInitialize(void);
osStatus_t osKernelStart(void);
osStatus_t osDelayUntil(uint32_t ticks);
uint32_t osThreadFlagsSet(osThreadId_t thread_id, uint32_t flags);
uint32_t osThreadFlagsWait(uint32_t flags, uint32_t options, uint32_t timeout);

#endif /* STAND_IN_CMSIS_OS2_H */
