/* SPDX-License-Identifier: Apache-2.0 */
#include "cmsis_os2.h"
#include "fake.h"
#include "fake_kernel.h"

enum { MAX_OBJECTS = 256, MAX_THREADS = 64, US_PER_TICK = 1000, TICKS_PER_SECOND = 1000 };

static struct fake_object
    objects[MAX_OBJECTS]; /* entries are never reused, so that old ids stay invalid */
static uint32_t object_count;
static char threads[MAX_THREADS]; /* only the addresses are used */

static const char mutex_noun[] = "mutex";

void fake_reset_objects(void);

void fake_reset_objects(void)
{
    for (uint32_t index = 0; index < object_count; index++) {
        objects[index] = (struct fake_object){0};
    }
    object_count = 0;
}

/* Locked. */
static void *make(const char *name, enum fake_kind kind, uint32_t count, uint32_t limit,
                  const void *memory, uint32_t bytes)
{
    if (fake_in_interrupt() || (memory != NULL && bytes == 0u)) {
        return NULL;
    }
    if (object_count == MAX_OBJECTS) {
        fake_misuse("%s: more than %d objects were made", name, MAX_OBJECTS);
        return NULL;
    }
    fake_make(&objects[object_count], kind, count, limit);
    return &objects[object_count++];
}

/* Locked; returns NULL if the id is invalid. */
static struct fake_object *object_of(void *id, enum fake_kind kind)
{
    for (uint32_t index = 0; index < object_count; index++) {
        if (id == &objects[index] && fake_is(&objects[index], kind)) {
            return &objects[index];
        }
    }
    return NULL;
}

static struct fake_object *mutex_of(osMutexId_t id)
{
    struct fake_object *recursive = object_of(id, FAKE_RECURSIVE_MUTEX);
    return recursive != NULL ? recursive : object_of(id, FAKE_MUTEX);
}

/* Until the nth tick from now; the first one may come at once. */
static uint64_t us_of(uint32_t ticks)
{
    const uint64_t us = (uint64_t)ticks * US_PER_TICK;
    return us == 0u ? 0u : us - ferrule_fake_now_us() % US_PER_TICK;
}

/* Before the kernel runs, nothing waits. */
static uint64_t deadline_us(uint32_t ticks)
{
    if (ticks == 0u || !fake_is_running()) {
        return FAKE_AT_ONCE;
    }
    return ticks == osWaitForever ? FAKE_FOREVER : fake_deadline_us(us_of(ticks));
}

static osStatus_t status_of(enum fake_result result)
{
    static const osStatus_t statuses[] = {
        [FAKE_DONE] = osOK,
        [FAKE_BUSY] = osErrorResource,
        [FAKE_LATE] = osErrorTimeout,
        [FAKE_GONE] = osErrorResource,
        [FAKE_OWN] = osErrorResource,
        [FAKE_NOT_OWN] = osErrorResource,
        [FAKE_FULL] = osErrorResource,
        [FAKE_NO_WAIT] = osErrorTimeout,
    };
    return statuses[result];
}

/* A wait that ends at once, because the kernel does not run yet, has timed out. */
static osStatus_t status_in(uint32_t timeout, enum fake_result result)
{
    return result == FAKE_BUSY && timeout != 0u ? osErrorTimeout : status_of(result);
}

static osKernelState_t state(void)
{
    if (!fake_is_running()) {
        return osKernelReady;
    }
    return fake_scheduler_is_mine() ? osKernelLocked : osKernelRunning;
}

osKernelState_t osKernelGetState(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, state());
    return (osKernelState_t)fake_end(&call);
}

/* Locked; returns the previous state. */
static int32_t set_kernel_lock(const char *name, bool locked)
{
    if (fake_in_interrupt()) {
        return osErrorISR;
    }
    if (!fake_is_running()) {
        return osError;
    }
    return fake_lock_scheduler(name, locked) ? 1 : 0;
}

int32_t osKernelLock(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, set_kernel_lock("osKernelLock", true));
    return (int32_t)fake_end(&call);
}

int32_t osKernelUnlock(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, set_kernel_lock("osKernelUnlock", false));
    return (int32_t)fake_end(&call);
}

static int32_t restore_lock(int32_t lock)
{
    const int32_t before = set_kernel_lock("osKernelRestoreLock", lock != 0);
    return before < 0 ? before : lock != 0;
}

int32_t osKernelRestoreLock(int32_t lock)
{
    FAKE_CALL(call, NULL, lock);
    FAKE_LOCKED(call, restore_lock(lock));
    return (int32_t)fake_end(&call);
}

uint32_t osKernelGetTickCount(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = fake_is_running() ? (int64_t)(ferrule_fake_now_us() / US_PER_TICK) : 0;
    }
    return (uint32_t)fake_end(&call);
}

uint32_t osKernelGetTickFreq(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = TICKS_PER_SECOND;
    }
    return (uint32_t)fake_end(&call);
}

uint32_t osKernelGetSysTimerCount(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = fake_is_running() ? (uint32_t)ferrule_fake_now_us() : 0;
    }
    return (uint32_t)fake_end(&call);
}

uint32_t osKernelGetSysTimerFreq(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = TICKS_PER_SECOND * US_PER_TICK;
    }
    return (uint32_t)fake_end(&call);
}

static osThreadId_t current(void)
{
    return fake_is_running() ? &threads[fake_thread() % MAX_THREADS] : NULL;
}

osThreadId_t osThreadGetId(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, (int64_t)(intptr_t)current());
    return (osThreadId_t)(intptr_t)fake_end(&call);
}

osThreadId_t osThreadNew(osThreadFunc_t func, void *argument, const osThreadAttr_t *attr)
{
    const osPriority_t priority =
        attr != NULL && attr->priority != osPriorityNone ? attr->priority : osPriorityNormal;
    FAKE_CALL(call, NULL, priority);
    if (!call.replaced) {
        fake_lock();
        call.result = (int64_t)(intptr_t)&threads[fake_start_thread(func, argument, priority)];
        fake_unlock();
    }
    return (osThreadId_t)(intptr_t)fake_end(&call);
}

_Noreturn void osThreadExit(void)
{
    FAKE_CALL(call, NULL);
    (void)fake_end(&call);
    fake_end_thread();
}

/* Threads that a test started have the priority 0, which CMSIS-RTOS2 has not: they are normal. */
static int64_t priority_of(const char *id)
{
    if (id < threads || id >= &threads[MAX_THREADS] || fake_in_interrupt()) {
        return osPriorityError;
    }
    const int32_t priority = fake_priority_of((uint32_t)(id - threads));
    return priority == 0 ? osPriorityNormal : priority;
}

osPriority_t osThreadGetPriority(osThreadId_t thread_id)
{
    FAKE_CALL(call, thread_id);
    FAKE_LOCKED(call, priority_of(thread_id));
    return (osPriority_t)fake_end(&call);
}

static osStatus_t sleep_for(const char *name, uint64_t us)
{
    if (fake_in_interrupt()) {
        return osErrorISR;
    }
    return fake_is_running() ? status_of(fake_sleep(name, fake_deadline_us(us))) : osError;
}

osStatus_t osThreadYield(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, sleep_for("osThreadYield", FAKE_YIELD_US));
    return (osStatus_t)fake_end(&call);
}

osStatus_t osDelay(uint32_t ticks)
{
    FAKE_CALL(call, NULL, ticks);
    FAKE_LOCKED(call, sleep_for("osDelay", us_of(ticks)));
    return (osStatus_t)fake_end(&call);
}

/* ---- mutexes */

static void *new_mutex(const osMutexAttr_t *attr)
{
    const osMutexAttr_t given = attr != NULL ? *attr : (osMutexAttr_t){0};
    const bool recursive = (given.attr_bits & osMutexRecursive) != 0u;
    return make("osMutexNew", recursive ? FAKE_RECURSIVE_MUTEX : FAKE_MUTEX, 0, 0, given.cb_mem,
                given.cb_size);
}

osMutexId_t osMutexNew(const osMutexAttr_t *attr)
{
    FAKE_CALL(call, NULL, attr == NULL ? 0 : attr->attr_bits);
    FAKE_LOCKED(call, (int64_t)(intptr_t)new_mutex(attr));
    return (osMutexId_t)(intptr_t)fake_end(&call);
}

/* Locked; what every call of a mutex checks first. RTX5 refuses them before it runs. */
static osStatus_t check_mutex(const struct fake_object *mutex)
{
    if (fake_in_interrupt()) {
        return osErrorISR;
    }
    if (!fake_is_running()) {
        return osError;
    }
    return mutex == NULL ? osErrorParameter : osOK;
}

static osStatus_t acquire(osMutexId_t id, uint32_t timeout)
{
    struct fake_object *mutex = mutex_of(id);
    const osStatus_t status = check_mutex(mutex);
    if (status != osOK) {
        return status;
    }
    return status_of(fake_mutex_lock("osMutexAcquire", mutex_noun, mutex, deadline_us(timeout)));
}

osStatus_t osMutexAcquire(osMutexId_t mutex_id, uint32_t timeout)
{
    FAKE_CALL(call, mutex_id, timeout);
    FAKE_LOCKED(call, acquire(mutex_id, timeout));
    return (osStatus_t)fake_end(&call);
}

static osStatus_t release(osMutexId_t id)
{
    struct fake_object *mutex = mutex_of(id);
    const osStatus_t status = check_mutex(mutex);
    return status != osOK ? status : status_of(fake_mutex_unlock(mutex_noun, mutex));
}

osStatus_t osMutexRelease(osMutexId_t mutex_id)
{
    FAKE_CALL(call, mutex_id);
    FAKE_LOCKED(call, release(mutex_id));
    return (osStatus_t)fake_end(&call);
}

static int64_t owner_of(osMutexId_t id)
{
    const struct fake_object *mutex = mutex_of(id);
    if (mutex == NULL || mutex->count == 0u || fake_in_interrupt()) {
        return 0;
    }
    return (int64_t)(intptr_t)&threads[mutex->owner % MAX_THREADS];
}

osThreadId_t osMutexGetOwner(osMutexId_t mutex_id)
{
    FAKE_CALL(call, mutex_id);
    FAKE_LOCKED(call, owner_of(mutex_id));
    return (osThreadId_t)(intptr_t)fake_end(&call);
}

/* Locked. */
static osStatus_t remove_object(struct fake_object *object)
{
    if (fake_in_interrupt()) {
        return osErrorISR;
    }
    if (object == NULL) {
        return osErrorParameter;
    }
    fake_delete(object);
    return osOK;
}

osStatus_t osMutexDelete(osMutexId_t mutex_id)
{
    FAKE_CALL(call, mutex_id);
    FAKE_LOCKED(call, remove_object(mutex_of(mutex_id)));
    return (osStatus_t)fake_end(&call);
}

/* ---- semaphores */

static void *new_semaphore(uint32_t max_count, uint32_t count, const osSemaphoreAttr_t *attr)
{
    const osSemaphoreAttr_t given = attr != NULL ? *attr : (osSemaphoreAttr_t){0};
    if (max_count == 0u || count > max_count) {
        return NULL;
    }
    return make("osSemaphoreNew", FAKE_SEMAPHORE, count, max_count, given.cb_mem, given.cb_size);
}

osSemaphoreId_t osSemaphoreNew(uint32_t max_count, uint32_t initial_count,
                               const osSemaphoreAttr_t *attr)
{
    FAKE_CALL(call, NULL, max_count, initial_count);
    FAKE_LOCKED(call, (int64_t)(intptr_t)new_semaphore(max_count, initial_count, attr));
    return (osSemaphoreId_t)(intptr_t)fake_end(&call);
}

static osStatus_t take(osSemaphoreId_t id, uint32_t timeout)
{
    struct fake_object *semaphore = object_of(id, FAKE_SEMAPHORE);
    if (semaphore == NULL || (fake_in_interrupt() && timeout != 0u)) {
        return osErrorParameter;
    }
    return status_in(timeout,
                     fake_semaphore_take("osSemaphoreAcquire", semaphore, deadline_us(timeout)));
}

osStatus_t osSemaphoreAcquire(osSemaphoreId_t semaphore_id, uint32_t timeout)
{
    FAKE_CALL(call, semaphore_id, timeout);
    FAKE_LOCKED(call, take(semaphore_id, timeout));
    return (osStatus_t)fake_end(&call);
}

static osStatus_t give(osSemaphoreId_t id)
{
    struct fake_object *semaphore = object_of(id, FAKE_SEMAPHORE);
    return semaphore == NULL ? osErrorParameter : status_of(fake_semaphore_give(semaphore));
}

osStatus_t osSemaphoreRelease(osSemaphoreId_t semaphore_id)
{
    FAKE_CALL(call, semaphore_id);
    FAKE_LOCKED(call, give(semaphore_id));
    return (osStatus_t)fake_end(&call);
}

static uint32_t count_of(osSemaphoreId_t id)
{
    const struct fake_object *semaphore = object_of(id, FAKE_SEMAPHORE);
    return semaphore == NULL ? 0u : semaphore->count;
}

uint32_t osSemaphoreGetCount(osSemaphoreId_t semaphore_id)
{
    FAKE_CALL(call, semaphore_id);
    FAKE_LOCKED(call, count_of(semaphore_id));
    return (uint32_t)fake_end(&call);
}

osStatus_t osSemaphoreDelete(osSemaphoreId_t semaphore_id)
{
    FAKE_CALL(call, semaphore_id);
    FAKE_LOCKED(call, remove_object(object_of(semaphore_id, FAKE_SEMAPHORE)));
    return (osStatus_t)fake_end(&call);
}

/* ---- event flags */

static void *new_flags(const osEventFlagsAttr_t *attr)
{
    const osEventFlagsAttr_t given = attr != NULL ? *attr : (osEventFlagsAttr_t){0};
    return make("osEventFlagsNew", FAKE_FLAGS, 0, 0, given.cb_mem, given.cb_size);
}

osEventFlagsId_t osEventFlagsNew(const osEventFlagsAttr_t *attr)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, (int64_t)(intptr_t)new_flags(attr));
    return (osEventFlagsId_t)(intptr_t)fake_end(&call);
}

/* Returns NULL if the id is invalid or `flags` has the error bit set. */
static struct fake_object *events_of(osEventFlagsId_t id, uint32_t flags)
{
    return (flags & osFlagsError) != 0u ? NULL : object_of(id, FAKE_FLAGS);
}

static uint32_t set_flags(osEventFlagsId_t id, uint32_t flags)
{
    struct fake_object *events = events_of(id, flags);
    if (events == NULL) {
        return osFlagsErrorParameter;
    }
    fake_flags_set(events, flags);
    return events->flags;
}

uint32_t osEventFlagsSet(osEventFlagsId_t ef_id, uint32_t flags)
{
    FAKE_CALL(call, ef_id, flags);
    FAKE_LOCKED(call, set_flags(ef_id, flags));
    return (uint32_t)fake_end(&call);
}

static uint32_t clear_flags(osEventFlagsId_t id, uint32_t flags)
{
    struct fake_object *events = events_of(id, flags);
    if (events == NULL) {
        return osFlagsErrorParameter;
    }
    const uint32_t before = events->flags;
    events->flags &= ~flags;
    return before;
}

uint32_t osEventFlagsClear(osEventFlagsId_t ef_id, uint32_t flags)
{
    FAKE_CALL(call, ef_id, flags);
    FAKE_LOCKED(call, clear_flags(ef_id, flags));
    return (uint32_t)fake_end(&call);
}

static uint32_t flags_of(osEventFlagsId_t id)
{
    const struct fake_object *events = object_of(id, FAKE_FLAGS);
    return events == NULL ? 0u : events->flags;
}

uint32_t osEventFlagsGet(osEventFlagsId_t ef_id)
{
    FAKE_CALL(call, ef_id);
    FAKE_LOCKED(call, flags_of(ef_id));
    return (uint32_t)fake_end(&call);
}

static uint32_t wait_for_flags(osEventFlagsId_t id, uint32_t flags, uint32_t options,
                               uint32_t timeout)
{
    struct fake_object *events = events_of(id, flags);
    if (events == NULL || (fake_in_interrupt() && timeout != 0u)) {
        return osFlagsErrorParameter;
    }
    uint32_t found = 0;
    const enum fake_result result =
        fake_flags_wait("osEventFlagsWait", events, flags, (options & osFlagsWaitAll) != 0u,
                        (options & osFlagsNoClear) == 0u, deadline_us(timeout), &found);
    /* the errors have the same numbers */
    return result == FAKE_DONE ? found : (uint32_t)status_in(timeout, result);
}

uint32_t osEventFlagsWait(osEventFlagsId_t ef_id, uint32_t flags, uint32_t options,
                          uint32_t timeout)
{
    FAKE_CALL(call, ef_id, flags, options, timeout);
    FAKE_LOCKED(call, wait_for_flags(ef_id, flags, options, timeout));
    return (uint32_t)fake_end(&call);
}

osStatus_t osEventFlagsDelete(osEventFlagsId_t ef_id)
{
    FAKE_CALL(call, ef_id);
    FAKE_LOCKED(call, remove_object(object_of(ef_id, FAKE_FLAGS)));
    return (osStatus_t)fake_end(&call);
}
