/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_TASK_H
#define FAKE_TASK_H

#include "FreeRTOS.h"

typedef void *TaskHandle_t;

TaskHandle_t xTaskGetCurrentTaskHandle(void);
BaseType_t xPortIsInsideInterrupt(void);
void taskENTER_CRITICAL(void);
void taskEXIT_CRITICAL(void);

/** What the calling thread is: 0 a program before the scheduler, 1 a task, 2 an interrupt. */
void fake_be(int what);

#endif /* FAKE_TASK_H */
