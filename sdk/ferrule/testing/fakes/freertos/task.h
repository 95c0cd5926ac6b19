/* SPDX-License-Identifier: Apache-2.0 */
/** @file FreeRTOS's tasks and critical sections, for the host. */
#ifndef FERRULE_FAKE_TASK_H
#define FERRULE_FAKE_TASK_H

#include "FreeRTOS.h"

#define tskKERNEL_VERSION_NUMBER "fake"

#define taskSCHEDULER_SUSPENDED   ((BaseType_t)0)
#define taskSCHEDULER_NOT_STARTED ((BaseType_t)1)
#define taskSCHEDULER_RUNNING     ((BaseType_t)2)

typedef struct tskTaskControlBlock *TaskHandle_t;
typedef void (*TaskFunction_t)(void *argument);

typedef struct {
    uint8_t fake_unused;
} StaticTask_t;

TaskHandle_t xTaskCreateStatic(TaskFunction_t body, const char *name, uint32_t stack_words,
                               void *argument, UBaseType_t priority, StackType_t *stack,
                               StaticTask_t *block);
void vTaskDelete(TaskHandle_t task);
void vTaskDelay(TickType_t ticks);
void taskYIELD(void);

TaskHandle_t xTaskGetCurrentTaskHandle(void);
BaseType_t xTaskGetSchedulerState(void);
UBaseType_t uxTaskPriorityGet(TaskHandle_t task);
TickType_t xTaskGetTickCount(void);
TickType_t xTaskGetTickCountFromISR(void);

void taskENTER_CRITICAL(void);
void taskEXIT_CRITICAL(void);
UBaseType_t taskENTER_CRITICAL_FROM_ISR(void);
void taskEXIT_CRITICAL_FROM_ISR(UBaseType_t masked);

#endif /* FERRULE_FAKE_TASK_H */
