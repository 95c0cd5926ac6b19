/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* recursive mutexes */
#include "semphr.h"
#include "task.h"

#include <time.h>

static pthread_mutex_t critical = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static _Thread_local int what;

void fake_be(int now)
{
    what = now;
}

TaskHandle_t xTaskGetCurrentTaskHandle(void)
{
    return what == 0 ? NULL : &what;
}

BaseType_t xPortIsInsideInterrupt(void)
{
    return what == 2 ? pdTRUE : pdFALSE;
}

void taskENTER_CRITICAL(void)
{
    pthread_mutex_lock(&critical);
}

void taskEXIT_CRITICAL(void)
{
    pthread_mutex_unlock(&critical);
}

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *buffer)
{
    return pthread_mutex_init(&buffer->mutex, NULL) == 0 ? buffer : NULL;
}

BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ticks / 1000;
    end.tv_nsec += (long)(ticks % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    return pthread_mutex_timedlock(&semaphore->mutex, &end) == 0 ? pdTRUE : pdFALSE;
}

BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore)
{
    return pthread_mutex_unlock(&semaphore->mutex) == 0 ? pdTRUE : pdFALSE;
}

void vSemaphoreDelete(SemaphoreHandle_t semaphore)
{
    pthread_mutex_destroy(&semaphore->mutex);
}
