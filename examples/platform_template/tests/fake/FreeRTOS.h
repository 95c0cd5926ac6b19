/* SPDX-License-Identifier: Apache-2.0 */
/** @file The names of FreeRTOS that the adapter uses, implemented with threads of the host. */
#ifndef FAKE_FREERTOS_H
#define FAKE_FREERTOS_H

#include <stdint.h>

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;

#define pdFALSE            ((BaseType_t)0)
#define pdTRUE             ((BaseType_t)1)
#define configTICK_RATE_HZ 1000u
#define portMAX_DELAY      UINT32_MAX
#define pdMS_TO_TICKS(ms)  ((TickType_t)(ms)) /* 1000 ticks a second */

#endif /* FAKE_FREERTOS_H */
