/* SPDX-License-Identifier: Apache-2.0 */
/** @file The part of FreeRTOS, version 11, that adapters use, for the host. */
#ifndef FERRULE_FAKE_FREERTOS_H
#define FERRULE_FAKE_FREERTOS_H

#include <stdint.h>

#include "fake_kernel.h"

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
typedef unsigned long StackType_t;

#define pdFALSE ((BaseType_t)0)
#define pdTRUE  ((BaseType_t)1)
#define pdFAIL  pdFALSE
#define pdPASS  pdTRUE

#ifndef configTICK_RATE_HZ
#define configTICK_RATE_HZ 1000
#endif
#define configTIMER_TASK_PRIORITY       6
#define configSUPPORT_STATIC_ALLOCATION 1
#define configUSE_MUTEXES               1
#define INCLUDE_uxTaskPriorityGet       1

#define portMAX_DELAY            UINT32_MAX
#define portYIELD_FROM_ISR(wake) ((void)(wake))
#define pdMS_TO_TICKS(ms)        ((TickType_t)((uint64_t)(ms) * configTICK_RATE_HZ / 1000u))

BaseType_t xPortIsInsideInterrupt(void);
#define portCHECK_IF_IN_ISR() xPortIsInsideInterrupt()

#endif /* FERRULE_FAKE_FREERTOS_H */
