/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_TASK_H
#define FAKE_TASK_H

#include "FreeRTOS.h"

typedef void *TaskHandle_t;

#define INCLUDE_uxTaskPriorityGet 1

TaskHandle_t xTaskGetCurrentTaskHandle(void);
UBaseType_t uxTaskPriorityGet(TaskHandle_t task);
void taskYIELD(void);
BaseType_t xPortIsInsideInterrupt(void);
TickType_t xTaskGetTickCount(void);
TickType_t xTaskGetTickCountFromISR(void);
void taskENTER_CRITICAL(void);
void taskEXIT_CRITICAL(void);
UBaseType_t taskENTER_CRITICAL_FROM_ISR(void);
void taskEXIT_CRITICAL_FROM_ISR(UBaseType_t masked);

#define portYIELD_FROM_ISR(woken) ((void)(woken))

/** Set the kind of the calling thread: 0 before the scheduler starts, 1 a task, 2 an interrupt. */
void fake_be(int what);

/** The ticks of the last wait of any thread for a binary semaphore. */
extern TickType_t fake_ticks;

#endif /* FAKE_TASK_H */
