/* SPDX-License-Identifier: Apache-2.0 */
/* ThreadX's names for the kernel of the fakes, with its error checking. */
#include <stddef.h>

#include "fake.h"
#include "fake_kernel.h"
#include "tx_initialize.h"
#include "tx_mutex.h"
#include "tx_semaphore.h"
#include "tx_thread.h"

enum { MAX_THREADS = 64, US_PER_S = 1000000, LOWEST_PRIORITY = 31 };

static TX_THREAD threads[MAX_THREADS];

static const char mutex_noun[] = "TX_MUTEX";

ULONG fake_system_state(void)
{
    FAKE_CALL_OF(call, "TX_THREAD_GET_SYSTEM_STATE", NULL);
    FAKE_LOCKED(call, fake_in_interrupt() ? 1
                      : fake_is_running() ? 0
                                          : (int64_t)TX_INITIALIZE_IN_PROGRESS);
    return (ULONG)fake_end(&call);
}

static uint64_t deadline_us(ULONG ticks)
{
    if (ticks == TX_NO_WAIT) {
        return FAKE_AT_ONCE;
    }
    return ticks == TX_WAIT_FOREVER
               ? FAKE_FOREVER
               : fake_deadline_us((uint64_t)ticks * US_PER_S / TX_TIMER_TICKS_PER_SECOND);
}

static bool may_wait(ULONG ticks)
{
    return ticks == TX_NO_WAIT || (fake_is_running() && !fake_in_interrupt());
}

/* ---- mutexes */

static UINT make_mutex(TX_MUTEX *mutex, UINT inherit)
{
    if (mutex == NULL || fake_is(&mutex->fake_object, FAKE_RECURSIVE_MUTEX)) {
        return TX_MUTEX_ERROR;
    }
    if (inherit > TX_INHERIT) {
        return TX_INHERIT_ERROR;
    }
    if (fake_in_interrupt()) {
        return TX_CALLER_ERROR;
    }
    fake_make(&mutex->fake_object, FAKE_RECURSIVE_MUTEX, 0, 0);
    return TX_SUCCESS;
}

UINT tx_mutex_create(TX_MUTEX *mutex, CHAR *name, UINT inherit)
{
    FAKE_CALL(call, mutex, inherit);
    (void)name;
    FAKE_LOCKED(call, make_mutex(mutex, inherit));
    return (UINT)fake_end(&call);
}

/* What every call of a mutex checks first. */
static UINT check_mutex(const TX_MUTEX *mutex)
{
    if (mutex == NULL || !fake_is(&mutex->fake_object, FAKE_RECURSIVE_MUTEX)) {
        return TX_MUTEX_ERROR;
    }
    return fake_in_interrupt() ? TX_CALLER_ERROR : TX_SUCCESS;
}

static bool may_delete(void)
{
    return fake_is_running() && !fake_in_interrupt();
}

static UINT lock_mutex(TX_MUTEX *mutex, ULONG ticks)
{
    const UINT status = check_mutex(mutex);
    if (status != TX_SUCCESS || !may_wait(ticks)) {
        return status != TX_SUCCESS ? status : TX_WAIT_ERROR;
    }
    const enum fake_result result =
        fake_mutex_lock("tx_mutex_get", mutex_noun, &mutex->fake_object, deadline_us(ticks));
    if (result == FAKE_GONE) {
        return TX_DELETED;
    }
    return result == FAKE_DONE ? TX_SUCCESS : TX_NOT_AVAILABLE;
}

UINT tx_mutex_get(TX_MUTEX *mutex, ULONG ticks)
{
    FAKE_CALL(call, mutex, (int64_t)ticks);
    FAKE_LOCKED(call, lock_mutex(mutex, ticks));
    return (UINT)fake_end(&call);
}

static UINT unlock_mutex(TX_MUTEX *mutex)
{
    const UINT status = check_mutex(mutex);
    if (status != TX_SUCCESS) {
        return status;
    }
    return fake_mutex_unlock(mutex_noun, &mutex->fake_object) == FAKE_DONE ? TX_SUCCESS
                                                                           : TX_NOT_OWNED;
}

UINT tx_mutex_put(TX_MUTEX *mutex)
{
    FAKE_CALL(call, mutex);
    FAKE_LOCKED(call, unlock_mutex(mutex));
    return (UINT)fake_end(&call);
}

static UINT delete_mutex(TX_MUTEX *mutex)
{
    const UINT status = may_delete() ? check_mutex(mutex) : TX_CALLER_ERROR;
    if (status == TX_SUCCESS) {
        fake_delete(&mutex->fake_object);
    }
    return status;
}

UINT tx_mutex_delete(TX_MUTEX *mutex)
{
    FAKE_CALL(call, mutex);
    FAKE_LOCKED(call, delete_mutex(mutex));
    return (UINT)fake_end(&call);
}

UINT _tx_mutex_delete(TX_MUTEX *mutex)
{
    FAKE_CALL(call, mutex);
    FAKE_LOCKED(call, (fake_delete(&mutex->fake_object), TX_SUCCESS));
    return (UINT)fake_end(&call);
}

/* ---- semaphores */

static UINT make_semaphore(TX_SEMAPHORE *semaphore, ULONG count)
{
    if (semaphore == NULL || fake_is(&semaphore->fake_object, FAKE_SEMAPHORE)) {
        return TX_SEMAPHORE_ERROR;
    }
    if (fake_in_interrupt()) {
        return TX_CALLER_ERROR;
    }
    fake_make(&semaphore->fake_object, FAKE_SEMAPHORE, (uint32_t)count, UINT32_MAX);
    return TX_SUCCESS;
}

UINT tx_semaphore_create(TX_SEMAPHORE *semaphore, CHAR *name, ULONG count)
{
    FAKE_CALL(call, semaphore, (int64_t)count);
    (void)name;
    FAKE_LOCKED(call, make_semaphore(semaphore, count));
    return (UINT)fake_end(&call);
}

static UINT check_semaphore(const TX_SEMAPHORE *semaphore)
{
    return semaphore == NULL || !fake_is(&semaphore->fake_object, FAKE_SEMAPHORE)
               ? TX_SEMAPHORE_ERROR
               : TX_SUCCESS;
}

static UINT take(TX_SEMAPHORE *semaphore, ULONG ticks)
{
    const UINT status = check_semaphore(semaphore);
    if (status != TX_SUCCESS || !may_wait(ticks)) {
        return status != TX_SUCCESS ? status : TX_WAIT_ERROR;
    }
    const enum fake_result result =
        fake_semaphore_take("tx_semaphore_get", &semaphore->fake_object, deadline_us(ticks));
    if (result == FAKE_GONE) {
        return TX_DELETED;
    }
    return result == FAKE_DONE ? TX_SUCCESS : TX_NO_INSTANCE;
}

UINT tx_semaphore_get(TX_SEMAPHORE *semaphore, ULONG ticks)
{
    FAKE_CALL(call, semaphore, (int64_t)ticks);
    FAKE_LOCKED(call, take(semaphore, ticks));
    return (UINT)fake_end(&call);
}

static UINT give(TX_SEMAPHORE *semaphore, ULONG ceiling)
{
    const UINT status = check_semaphore(semaphore);
    if (status != TX_SUCCESS) {
        return status;
    }
    return semaphore->fake_object.count >= ceiling ||
                   fake_semaphore_give(&semaphore->fake_object) != FAKE_DONE
               ? TX_CEILING_EXCEEDED
               : TX_SUCCESS;
}

UINT tx_semaphore_ceiling_put(TX_SEMAPHORE *semaphore, ULONG ceiling)
{
    FAKE_CALL(call, semaphore, (int64_t)ceiling);
    FAKE_LOCKED(call, give(semaphore, ceiling));
    return (UINT)fake_end(&call);
}

static UINT delete_semaphore(TX_SEMAPHORE *semaphore)
{
    const UINT status = may_delete() ? check_semaphore(semaphore) : TX_CALLER_ERROR;
    if (status == TX_SUCCESS) {
        fake_delete(&semaphore->fake_object);
    }
    return status;
}

UINT tx_semaphore_delete(TX_SEMAPHORE *semaphore)
{
    FAKE_CALL(call, semaphore);
    FAKE_LOCKED(call, delete_semaphore(semaphore));
    return (UINT)fake_end(&call);
}

UINT _tx_semaphore_delete(TX_SEMAPHORE *semaphore)
{
    FAKE_CALL(call, semaphore);
    FAKE_LOCKED(call, (fake_delete(&semaphore->fake_object), TX_SUCCESS));
    return (UINT)fake_end(&call);
}

/* ---- threads */

static TX_THREAD *current(void)
{
    TX_THREAD *thread = &threads[fake_thread() % MAX_THREADS];
    if (!fake_is_running() || fake_in_interrupt()) {
        return NULL;
    }
    thread->tx_thread_priority = (UINT)(LOWEST_PRIORITY - fake_priority_of(fake_thread()));
    return thread;
}

TX_THREAD *tx_thread_identify(VOID)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, (int64_t)(intptr_t)current());
    return (TX_THREAD *)(intptr_t)fake_end(&call);
}

static void enter(void *given)
{
    const TX_THREAD *thread = given;
    thread->fake_entry(thread->fake_input);
}

UINT tx_thread_create(TX_THREAD *thread, CHAR *name, VOID (*entry)(ULONG input), ULONG input,
                      VOID *stack, ULONG stack_bytes, UINT priority, UINT threshold, ULONG slice,
                      UINT auto_start)
{
    FAKE_CALL(call, thread, (int64_t)stack_bytes, priority);
    (void)name;
    (void)stack;
    (void)slice;
    if (!call.replaced) {
        if (auto_start != TX_AUTO_START || threshold != priority) {
            fake_misuse("tx_thread_create without TX_AUTO_START or with a threshold is not part of "
                        "the fakes");
        }
        thread->fake_entry = entry;
        thread->fake_input = input;
        fake_lock();
        (void)fake_start_thread(enter, thread, (int32_t)(LOWEST_PRIORITY - priority));
        fake_unlock();
    }
    return (UINT)fake_end(&call);
}

VOID tx_thread_relinquish(VOID)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        fake_lock();
        (void)fake_sleep("tx_thread_relinquish", fake_deadline_us(FAKE_YIELD_US));
        fake_unlock();
    }
    (void)fake_end(&call);
}

UINT tx_thread_sleep(ULONG ticks)
{
    FAKE_CALL(call, NULL, (int64_t)ticks);
    FAKE_LOCKED(call, fake_sleep("tx_thread_sleep", deadline_us(ticks)) == FAKE_NO_WAIT
                          ? TX_CALLER_ERROR
                          : TX_SUCCESS);
    return (UINT)fake_end(&call);
}

ULONG tx_time_get(VOID)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(
        call, (int64_t)(ferrule_fake_now_us() * TX_TIMER_TICKS_PER_SECOND / US_PER_S & UINT32_MAX));
    return (ULONG)fake_end(&call);
}

UINT tx_interrupt_control(UINT posture)
{
    FAKE_CALL(call, NULL, posture);
    const bool was_masked = fake_masks() > 0u;
    call.result = was_masked ? TX_INT_DISABLE : TX_INT_ENABLE;
    if (posture == TX_INT_DISABLE && !was_masked) {
        fake_mask_interrupts();
    } else if (posture == TX_INT_ENABLE && was_masked) {
        fake_unmask_interrupts();
    }
    return (UINT)fake_end(&call);
}
