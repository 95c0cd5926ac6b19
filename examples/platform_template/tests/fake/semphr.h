/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_SEMPHR_H
#define FAKE_SEMPHR_H

#include <pthread.h>

#include "FreeRTOS.h"

/** A mutex, or a binary semaphore: then `mutex` protects `given`. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int is_binary;
    int given;
} StaticSemaphore_t;
typedef StaticSemaphore_t *SemaphoreHandle_t;

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *buffer);
SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *buffer);
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks);
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore);
BaseType_t xSemaphoreGiveFromISR(SemaphoreHandle_t semaphore, BaseType_t *woken);
void vSemaphoreDelete(SemaphoreHandle_t semaphore);

#endif /* FAKE_SEMPHR_H */
