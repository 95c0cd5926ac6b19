/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS's names for the kernel of the fakes. What its configASSERT refuses is a misuse. */
#include <stddef.h>

#include "fake.h"
#include "fake_kernel.h"
#include "freertos/FreeRTOS.h"
#include "semphr.h"
#include "task.h"

enum { MAX_TASKS = 64, US_PER_S = 1000000 };

static char tasks[MAX_TASKS]; /* only the addresses are used */

static const char mutex_noun[] = "mutex";

static uint64_t deadline_us(TickType_t ticks)
{
    if (ticks == 0u) {
        return FAKE_AT_ONCE;
    }
    return ticks == portMAX_DELAY
               ? FAKE_FOREVER
               : fake_deadline_us((uint64_t)ticks * US_PER_S / configTICK_RATE_HZ);
}

BaseType_t xPortIsInsideInterrupt(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, fake_in_interrupt());
    return (BaseType_t)fake_end(&call);
}

/* ---- semaphores */

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *buffer)
{
    FAKE_CALL(call, buffer);
    if (!call.replaced) {
        fake_make(&buffer->fake_object, FAKE_MUTEX, 0, 0);
        buffer->fake_object.barges = true;
        call.result = (int64_t)(intptr_t)buffer;
    }
    return (SemaphoreHandle_t)(intptr_t)fake_end(&call);
}

SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *buffer)
{
    FAKE_CALL(call, buffer);
    if (!call.replaced) {
        fake_make(&buffer->fake_object, FAKE_SEMAPHORE, 0, 1);
        call.result = (int64_t)(intptr_t)buffer;
    }
    return (SemaphoreHandle_t)(intptr_t)fake_end(&call);
}

/* Returns whether it is a mutex; reports a handle that is none. */
static bool is_mutex(const char *name, SemaphoreHandle_t semaphore, bool *is_semaphore)
{
    const struct fake_object *object = semaphore == NULL ? NULL : &semaphore->fake_object;
    *is_semaphore = fake_is(object, FAKE_SEMAPHORE);
    if (!*is_semaphore && !fake_is(object, FAKE_MUTEX)) {
        fake_misuse("%s of a semaphore that was not created here", name);
        return false;
    }
    return !*is_semaphore;
}

static BaseType_t take(SemaphoreHandle_t semaphore, TickType_t ticks)
{
    bool is_semaphore;
    const bool locks = is_mutex("xSemaphoreTake", semaphore, &is_semaphore);
    enum fake_result result = FAKE_GONE;
    if (fake_refuses_interrupt("xSemaphoreTake")) {
        return pdFALSE;
    }
    if (locks) {
        result = fake_mutex_lock("xSemaphoreTake", mutex_noun, &semaphore->fake_object,
                                 deadline_us(ticks));
    } else if (is_semaphore) {
        result = fake_semaphore_take("xSemaphoreTake", &semaphore->fake_object, deadline_us(ticks));
    }
    if (result == FAKE_OWN && ticks != 0u) {
        fake_misuse("xSemaphoreTake waits for a mutex that the task has");
    }
    return result == FAKE_DONE ? pdTRUE : pdFALSE;
}

BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks)
{
    FAKE_CALL(call, semaphore, ticks);
    FAKE_LOCKED(call, take(semaphore, ticks));
    return (BaseType_t)fake_end(&call);
}

static BaseType_t give(SemaphoreHandle_t semaphore)
{
    bool is_semaphore;
    if (is_mutex("xSemaphoreGive", semaphore, &is_semaphore)) {
        if (fake_mutex_unlock(mutex_noun, &semaphore->fake_object) == FAKE_DONE) {
            return pdTRUE;
        }
        fake_misuse("xSemaphoreGive of a mutex that the task does not have");
        return pdFALSE;
    }
    return is_semaphore && fake_semaphore_give(&semaphore->fake_object) == FAKE_DONE ? pdTRUE
                                                                                     : pdFALSE;
}

BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore)
{
    FAKE_CALL(call, semaphore);
    FAKE_LOCKED(call, fake_refuses_interrupt("xSemaphoreGive") ? pdFALSE : give(semaphore));
    return (BaseType_t)fake_end(&call);
}

static BaseType_t give_from_interrupt(SemaphoreHandle_t semaphore)
{
    bool is_semaphore;
    if (is_mutex("xSemaphoreGiveFromISR", semaphore, &is_semaphore)) {
        fake_misuse("xSemaphoreGiveFromISR of a mutex");
        return pdFALSE;
    }
    return give(semaphore);
}

BaseType_t xSemaphoreGiveFromISR(SemaphoreHandle_t semaphore, BaseType_t *woken)
{
    FAKE_CALL(call, semaphore);
    FAKE_LOCKED(call, give_from_interrupt(semaphore));
    *woken = pdTRUE;
    return (BaseType_t)fake_end(&call);
}

void vSemaphoreDelete(SemaphoreHandle_t semaphore)
{
    FAKE_CALL(call, semaphore);
    if (!call.replaced) {
        bool is_semaphore;
        fake_lock();
        if (is_mutex("vSemaphoreDelete", semaphore, &is_semaphore) || is_semaphore) {
            fake_delete(&semaphore->fake_object);
        }
        fake_unlock();
    }
    (void)fake_end(&call);
}

/* ---- tasks */

TaskHandle_t xTaskCreateStatic(TaskFunction_t body, const char *name, uint32_t stack_words,
                               void *argument, UBaseType_t priority, StackType_t *stack,
                               StaticTask_t *block)
{
    FAKE_CALL(call, block, stack_words, (int64_t)priority);
    (void)name;
    if (!call.replaced && stack != NULL) {
        fake_lock();
        (void)fake_start_thread(body, argument, (int32_t)priority);
        fake_unlock();
        call.result = (int64_t)(intptr_t)block;
    }
    return (TaskHandle_t)(intptr_t)fake_end(&call);
}

void vTaskDelete(TaskHandle_t task)
{
    FAKE_CALL(call, task);
    (void)fake_end(&call);
    if (task == NULL) {
        fake_end_thread();
    }
    fake_misuse("vTaskDelete of another task is not part of the fakes");
}

static TaskHandle_t current(void)
{
    return fake_is_running() ? (TaskHandle_t)&tasks[fake_thread() % MAX_TASKS] : NULL;
}

TaskHandle_t xTaskGetCurrentTaskHandle(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, (int64_t)(intptr_t)current());
    return (TaskHandle_t)(intptr_t)fake_end(&call);
}

BaseType_t xTaskGetSchedulerState(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, fake_is_running() ? taskSCHEDULER_RUNNING : taskSCHEDULER_NOT_STARTED);
    return (BaseType_t)fake_end(&call);
}

UBaseType_t uxTaskPriorityGet(TaskHandle_t task)
{
    FAKE_CALL(call, task);
    if (!call.replaced && task != NULL) {
        fake_misuse("uxTaskPriorityGet of another task is not part of the fakes");
    }
    FAKE_LOCKED(call, fake_priority_of(fake_thread()));
    return (UBaseType_t)fake_end(&call);
}

void vTaskDelay(TickType_t ticks)
{
    FAKE_CALL(call, NULL, ticks);
    if (!call.replaced) {
        fake_lock();
        if (!fake_refuses_interrupt("vTaskDelay")) {
            (void)fake_sleep("vTaskDelay", deadline_us(ticks));
        }
        fake_unlock();
    }
    (void)fake_end(&call);
}

void taskYIELD(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        fake_lock();
        (void)fake_sleep("taskYIELD", fake_deadline_us(FAKE_YIELD_US));
        fake_unlock();
    }
    (void)fake_end(&call);
}

static uint32_t ticks_now(void)
{
    return (uint32_t)(ferrule_fake_now_us() * configTICK_RATE_HZ / US_PER_S);
}

TickType_t xTaskGetTickCount(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, ticks_now());
    return (TickType_t)fake_end(&call);
}

TickType_t xTaskGetTickCountFromISR(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, ticks_now());
    return (TickType_t)fake_end(&call);
}

void taskENTER_CRITICAL(void)
{
    FAKE_CALL(call, NULL);
    (void)fake_refuses_interrupt("taskENTER_CRITICAL");
    fake_mask_interrupts();
    (void)fake_end(&call);
}

void taskEXIT_CRITICAL(void)
{
    FAKE_CALL(call, NULL);
    if (fake_masks() == 0u) {
        fake_misuse("taskEXIT_CRITICAL outside of a critical section");
    } else {
        fake_unmask_interrupts();
    }
    (void)fake_end(&call);
}

UBaseType_t taskENTER_CRITICAL_FROM_ISR(void)
{
    FAKE_CALL(call, NULL);
    call.result = fake_masks();
    fake_mask_interrupts();
    return (UBaseType_t)fake_end(&call);
}

void taskEXIT_CRITICAL_FROM_ISR(UBaseType_t masked)
{
    FAKE_CALL(call, NULL, (int64_t)masked);
    if (fake_masks() != masked + 1u) {
        fake_misuse("taskEXIT_CRITICAL_FROM_ISR with another value than the last one");
    } else {
        fake_unmask_interrupts();
    }
    (void)fake_end(&call);
}

/* ---- ESP-IDF's critical sections. The lock is one that only the core which has it may release,
 * and interrupts are masked on that core alone, so both are needed. */

static void enter_with(const char *name, portMUX_TYPE *mux, bool in_interrupt)
{
    if (fake_in_interrupt() != in_interrupt) {
        fake_misuse("%s %s an interrupt", name, in_interrupt ? "outside of" : "in");
    }
    fake_mask_interrupts();
    mux->fake_held++;
}

static void exit_with(const char *name, portMUX_TYPE *mux)
{
    if (mux->fake_held == 0u || fake_masks() == 0u) {
        fake_misuse("%s of a spin lock that is not held", name);
        return;
    }
    mux->fake_held--;
    fake_unmask_interrupts();
}

void portENTER_CRITICAL(portMUX_TYPE *mux)
{
    FAKE_CALL(call, mux);
    enter_with("portENTER_CRITICAL", mux, false);
    (void)fake_end(&call);
}

void portEXIT_CRITICAL(portMUX_TYPE *mux)
{
    FAKE_CALL(call, mux);
    exit_with("portEXIT_CRITICAL", mux);
    (void)fake_end(&call);
}

void portENTER_CRITICAL_ISR(portMUX_TYPE *mux)
{
    FAKE_CALL(call, mux);
    enter_with("portENTER_CRITICAL_ISR", mux, true);
    (void)fake_end(&call);
}

void portEXIT_CRITICAL_ISR(portMUX_TYPE *mux)
{
    FAKE_CALL(call, mux);
    exit_with("portEXIT_CRITICAL_ISR", mux);
    (void)fake_end(&call);
}

BaseType_t xPortInIsrContext(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, fake_in_interrupt());
    return (BaseType_t)fake_end(&call);
}
