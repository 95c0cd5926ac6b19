/* SPDX-License-Identifier: Apache-2.0 */
/** @file FreeRTOS's mutexes and binary semaphores, for the host. */
#ifndef FERRULE_FAKE_SEMPHR_H
#define FERRULE_FAKE_SEMPHR_H

#include "FreeRTOS.h"

typedef struct {
    struct fake_object fake_object;
} StaticSemaphore_t;
typedef StaticSemaphore_t *SemaphoreHandle_t;

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *buffer);
SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *buffer);
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks);
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore);
BaseType_t xSemaphoreGiveFromISR(SemaphoreHandle_t semaphore, BaseType_t *woken);
void vSemaphoreDelete(SemaphoreHandle_t semaphore);

#endif /* FERRULE_FAKE_SEMPHR_H */
