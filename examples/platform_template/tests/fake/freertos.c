/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* recursive mutexes */
#include "semphr.h"
#include "task.h"

#include <sched.h>
#include <time.h>

static pthread_mutex_t critical = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static _Thread_local int what;
TickType_t fake_ticks;

void fake_be(int now)
{
    what = now;
}

TaskHandle_t xTaskGetCurrentTaskHandle(void)
{
    return what == 0 ? NULL : &what;
}

UBaseType_t uxTaskPriorityGet(TaskHandle_t task)
{
    (void)task; /* all are equal */
    return 1;
}

void taskYIELD(void)
{
    (void)sched_yield();
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

UBaseType_t taskENTER_CRITICAL_FROM_ISR(void)
{
    taskENTER_CRITICAL();
    return 0;
}

void taskEXIT_CRITICAL_FROM_ISR(UBaseType_t masked)
{
    (void)masked;
    taskEXIT_CRITICAL();
}

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *buffer)
{
    buffer->is_binary = 0;
    return pthread_mutex_init(&buffer->mutex, NULL) == 0 ? buffer : NULL;
}

SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *buffer)
{
    buffer->is_binary = 1;
    buffer->given = 0;
    (void)pthread_cond_init(&buffer->changed, NULL);
    return pthread_mutex_init(&buffer->mutex, NULL) == 0 ? buffer : NULL;
}

static struct timespec in_ticks(TickType_t ticks)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ticks / 1000;
    end.tv_nsec += (long)(ticks % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    return end;
}

static BaseType_t take_binary(SemaphoreHandle_t semaphore, const struct timespec *end)
{
    int failed = 0;
    BaseType_t taken;

    pthread_mutex_lock(&semaphore->mutex);
    while (!semaphore->given && failed == 0) {
        failed = pthread_cond_timedwait(&semaphore->changed, &semaphore->mutex, end);
    }
    taken = semaphore->given ? pdTRUE : pdFALSE;
    semaphore->given = 0;
    pthread_mutex_unlock(&semaphore->mutex);
    return taken;
}

BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks)
{
    const struct timespec end = in_ticks(ticks);

    if (semaphore->is_binary) {
        fake_ticks = ticks;
        return take_binary(semaphore, &end);
    }
    return pthread_mutex_timedlock(&semaphore->mutex, &end) == 0 ? pdTRUE : pdFALSE;
}

static BaseType_t give_binary(SemaphoreHandle_t semaphore)
{
    int before;

    pthread_mutex_lock(&semaphore->mutex);
    before = semaphore->given;
    semaphore->given = 1;
    pthread_cond_signal(&semaphore->changed);
    pthread_mutex_unlock(&semaphore->mutex);
    return before ? pdFALSE : pdTRUE;
}

BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore)
{
    if (semaphore->is_binary) {
        return give_binary(semaphore);
    }
    return pthread_mutex_unlock(&semaphore->mutex) == 0 ? pdTRUE : pdFALSE;
}

BaseType_t xSemaphoreGiveFromISR(SemaphoreHandle_t semaphore, BaseType_t *woken)
{
    *woken = pdTRUE;
    return give_binary(semaphore);
}

TickType_t xTaskGetTickCount(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (TickType_t)(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

TickType_t xTaskGetTickCountFromISR(void)
{
    return xTaskGetTickCount();
}

void vSemaphoreDelete(SemaphoreHandle_t semaphore)
{
    if (semaphore->is_binary) {
        pthread_cond_destroy(&semaphore->changed);
    }
    pthread_mutex_destroy(&semaphore->mutex);
}
