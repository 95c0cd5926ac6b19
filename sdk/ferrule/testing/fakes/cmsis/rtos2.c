/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cmsis_os2.h"
#include "fake.h"
#include "ferrule_fake_cmsis.h"

enum { MAX_OBJECTS = 256, MAX_THREADS = 64, US_PER_TICK = 1000, TICKS_PER_SECOND = 1000 };

enum kind { FREE, MUTEX, SEMAPHORE, FLAGS };

struct object {
    enum kind kind; /* FREE: deleted, or never made */
    uint32_t attributes;
    uint32_t owner, count, limit; /* of a mutex: thread and depth */
    uint32_t flags;
};

/* The object and flags that a thread waits for. */
struct wish {
    const struct object *object;
    uint32_t flags;
    uint32_t options;
};

static struct object
    objects[MAX_OBJECTS]; /* entries are never reused, so that old ids stay invalid */
static uint32_t object_count;
static char threads[MAX_THREADS]; /* only the addresses are used */

static uint32_t kernel_holder; /* number of the thread that locked the kernel, 0: none */
static bool is_stopped;        /* before osKernelStart: no thread runs, and no time passes */

void fake_reset_kernel(void);

void fake_reset_kernel(void)
{
    for (uint32_t index = 0; index < object_count; index++) {
        objects[index] = (struct object){0};
    }
    object_count = 0;
    kernel_holder = 0;
    is_stopped = false;
}

void ferrule_fake_start_kernel(uint32_t starts)
{
    fake_lock();
    is_stopped = starts == 0u;
    fake_unlock();
}

/* Locked. */
static void *make(const char *name, struct object object, const void *memory, uint32_t bytes)
{
    if (fake_in_interrupt() || (memory != NULL && bytes == 0u)) {
        return NULL;
    }
    if (object_count == MAX_OBJECTS) {
        fake_misuse("%s: more than %d objects were made", name, MAX_OBJECTS);
        return NULL;
    }
    objects[object_count] = object;
    return &objects[object_count++];
}

/* Locked; returns NULL if the id is invalid. */
static struct object *object_of(void *id, enum kind kind)
{
    for (uint32_t index = 0; index < object_count; index++) {
        if (id == &objects[index] && objects[index].kind == kind) {
            return &objects[index];
        }
    }
    return NULL;
}

/* Until the nth tick from now; the first one may come at once. */
static uint64_t us_of(uint32_t ticks)
{
    const uint64_t us = (uint64_t)ticks * US_PER_TICK;
    return us == 0u ? 0u : us - ferrule_fake_now_us() % US_PER_TICK;
}

static uint64_t deadline_us(uint32_t ticks)
{
    return ticks == osWaitForever ? FAKE_FOREVER : fake_deadline_us(us_of(ticks));
}

static osKernelState_t state(void)
{
    if (is_stopped) {
        return osKernelReady;
    }
    return kernel_holder == fake_thread() ? osKernelLocked : osKernelRunning;
}

osKernelState_t osKernelGetState(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, state());
    return (osKernelState_t)fake_end(&call);
}

static bool kernel_is_free(const void *object)
{
    (void)object;
    return kernel_holder == 0u;
}

/* Locked; another thread that locks the kernel waits, because it would not run; returns the
 * previous state.
 */
static int32_t set_kernel_lock(const char *name, bool locked)
{
    if (fake_in_interrupt()) {
        return osErrorISR;
    }
    if (is_stopped) {
        return osError;
    }
    const bool before = kernel_holder == fake_thread();
    if (locked && !before) {
        if (!fake_wait(name, kernel_is_free, NULL, FAKE_FOREVER)) {
            return osError;
        }
        kernel_holder = fake_thread();
        fake_hold(&kernel_holder, "the kernel is locked, by thread %u", (unsigned)kernel_holder);
    } else if (!locked && before) {
        kernel_holder = 0;
        fake_give_back(&kernel_holder);
        fake_wake();
    }
    return before ? 1 : 0;
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

int32_t osKernelRestoreLock(int32_t lock)
{
    FAKE_CALL(call, NULL, lock);
    if (!call.replaced) {
        fake_lock();
        const int32_t before = set_kernel_lock("osKernelRestoreLock", lock != 0);
        call.result = before < 0 ? before : lock != 0;
        fake_unlock();
    }
    return (int32_t)fake_end(&call);
}

/* Locked; like fake_wait, but a misuse by a thread that keeps the others from running. */
static bool wait_for(const char *name, bool (*ready)(const void *object), const void *object,
                     uint64_t deadline)
{
    if (kernel_holder == fake_thread() && !ready(object)) {
        fake_misuse("%s waits while the kernel is locked", name);
        return false;
    }
    return fake_wait(name, ready, object, deadline);
}

uint32_t osKernelGetTickCount(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = is_stopped ? 0 : (int64_t)(ferrule_fake_now_us() / US_PER_TICK);
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
        call.result = is_stopped ? 0 : (uint32_t)ferrule_fake_now_us();
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

osThreadId_t osThreadGetId(void)
{
    FAKE_CALL(call, NULL);
    FAKE_LOCKED(call, is_stopped ? 0 : (int64_t)(intptr_t)&threads[fake_thread() % MAX_THREADS]);
    return (osThreadId_t)(intptr_t)fake_end(&call);
}

osPriority_t osThreadGetPriority(osThreadId_t thread_id)
{
    FAKE_CALL(call, thread_id);
    if (!call.replaced) {
        call.result = thread_id == NULL ? osPriorityError : osPriorityNormal;
    }
    return (osPriority_t)fake_end(&call);
}

static bool never(const void *object)
{
    (void)object;
    return false;
}

static osStatus_t sleep_for(const char *name, uint64_t us)
{
    if (fake_in_interrupt()) {
        return osErrorISR;
    }
    if (is_stopped) {
        return osError;
    }
    fake_lock();
    (void)wait_for(name, never, NULL, fake_deadline_us(us));
    fake_unlock();
    return osOK;
}

osStatus_t osThreadYield(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = sleep_for("osThreadYield", FAKE_YIELD_US);
    }
    return (osStatus_t)fake_end(&call);
}

osStatus_t osDelay(uint32_t ticks)
{
    FAKE_CALL(call, NULL, ticks);
    if (!call.replaced) {
        call.result = sleep_for("osDelay", us_of(ticks));
    }
    return (osStatus_t)fake_end(&call);
}

/* ---- mutexes */

osMutexId_t osMutexNew(const osMutexAttr_t *attr)
{
    FAKE_CALL(call, NULL, attr == NULL ? 0 : attr->attr_bits);
    if (!call.replaced) {
        const osMutexAttr_t given = attr != NULL ? *attr : (osMutexAttr_t){0};
        const struct object mutex = {.kind = MUTEX, .attributes = given.attr_bits};
        fake_lock();
        call.result = (int64_t)(intptr_t)make("osMutexNew", mutex, given.cb_mem, given.cb_size);
        fake_unlock();
    }
    return (osMutexId_t)(intptr_t)fake_end(&call);
}

/* Locked; the count of a mutex has changed. */
static void note_lock(const struct object *mutex)
{
    if (mutex->count == 0u) {
        fake_give_back(mutex);
    } else {
        fake_hold(mutex, "the mutex %p is locked %u times, by thread %u", (const void *)mutex,
                  (unsigned)mutex->count, (unsigned)mutex->owner);
    }
}

static bool mutex_is_free(const void *object)
{
    const struct object *mutex = object;
    return mutex->kind != MUTEX || mutex->count == 0u;
}

static osStatus_t acquire(osMutexId_t id, uint32_t timeout)
{
    struct object *mutex = object_of(id, MUTEX);
    if (fake_in_interrupt()) {
        return osErrorISR;
    }
    if (is_stopped) {
        return osError;
    }
    if (mutex == NULL) {
        return osErrorParameter;
    }
    if (mutex->count > 0u && mutex->owner == fake_thread()) {
        if ((mutex->attributes & osMutexRecursive) == 0u) {
            return osErrorResource;
        }
    } else if (mutex->count > 0u) {
        if (timeout == 0u) {
            return osErrorResource;
        }
        if (!wait_for("osMutexAcquire", mutex_is_free, mutex, deadline_us(timeout))) {
            return osErrorTimeout;
        }
        if (mutex->kind != MUTEX) { /* deleted meanwhile */
            return osErrorResource;
        }
    }
    mutex->owner = fake_thread();
    mutex->count++;
    note_lock(mutex);
    return osOK;
}

osStatus_t osMutexAcquire(osMutexId_t mutex_id, uint32_t timeout)
{
    FAKE_CALL(call, mutex_id, timeout);
    FAKE_LOCKED(call, acquire(mutex_id, timeout));
    return (osStatus_t)fake_end(&call);
}

static osStatus_t release(osMutexId_t id)
{
    struct object *mutex = object_of(id, MUTEX);
    if (fake_in_interrupt()) {
        return osErrorISR;
    }
    if (is_stopped) {
        return osError;
    }
    if (mutex == NULL) {
        return osErrorParameter;
    }
    if (mutex->count == 0u || mutex->owner != fake_thread()) {
        return osErrorResource;
    }
    mutex->count--;
    note_lock(mutex);
    if (mutex->count == 0u) {
        fake_wake();
    }
    return osOK;
}

osStatus_t osMutexRelease(osMutexId_t mutex_id)
{
    FAKE_CALL(call, mutex_id);
    FAKE_LOCKED(call, release(mutex_id));
    return (osStatus_t)fake_end(&call);
}

static int64_t owner_of(osMutexId_t id)
{
    const struct object *mutex = object_of(id, MUTEX);
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
static osStatus_t remove_object(void *id, enum kind kind)
{
    struct object *object = object_of(id, kind);
    if (fake_in_interrupt()) {
        return osErrorISR;
    }
    if (object == NULL) {
        return osErrorParameter;
    }
    *object = (struct object){0};
    fake_give_back(object);
    fake_wake();
    return osOK;
}

osStatus_t osMutexDelete(osMutexId_t mutex_id)
{
    FAKE_CALL(call, mutex_id);
    FAKE_LOCKED(call, remove_object(mutex_id, MUTEX));
    return (osStatus_t)fake_end(&call);
}

/* ---- semaphores */

osSemaphoreId_t osSemaphoreNew(uint32_t max_count, uint32_t initial_count,
                               const osSemaphoreAttr_t *attr)
{
    FAKE_CALL(call, NULL, max_count, initial_count);
    if (!call.replaced && max_count > 0u && initial_count <= max_count) {
        const osSemaphoreAttr_t given = attr != NULL ? *attr : (osSemaphoreAttr_t){0};
        const struct object made = {.kind = SEMAPHORE, .count = initial_count, .limit = max_count};
        fake_lock();
        call.result = (int64_t)(intptr_t)make("osSemaphoreNew", made, given.cb_mem, given.cb_size);
        fake_unlock();
    }
    return (osSemaphoreId_t)(intptr_t)fake_end(&call);
}

static bool has_count(const void *object)
{
    const struct object *semaphore = object;
    return semaphore->kind != SEMAPHORE || semaphore->count > 0u;
}

static osStatus_t take(osSemaphoreId_t id, uint32_t timeout)
{
    struct object *semaphore = object_of(id, SEMAPHORE);
    if (semaphore == NULL || (fake_in_interrupt() && timeout != 0u)) {
        return osErrorParameter;
    }
    if (timeout == 0u && semaphore->count == 0u) {
        return osErrorResource;
    }
    if (is_stopped && semaphore->count == 0u) {
        return osErrorTimeout; /* at once */
    }
    if (!wait_for("osSemaphoreAcquire", has_count, semaphore, deadline_us(timeout))) {
        return osErrorTimeout;
    }
    if (semaphore->kind != SEMAPHORE) {
        return osErrorResource;
    }
    semaphore->count--;
    return osOK;
}

osStatus_t osSemaphoreAcquire(osSemaphoreId_t semaphore_id, uint32_t timeout)
{
    FAKE_CALL(call, semaphore_id, timeout);
    FAKE_LOCKED(call, take(semaphore_id, timeout));
    return (osStatus_t)fake_end(&call);
}

static osStatus_t give(osSemaphoreId_t id)
{
    struct object *semaphore = object_of(id, SEMAPHORE);
    if (semaphore == NULL) {
        return osErrorParameter;
    }
    if (semaphore->count == semaphore->limit) {
        return osErrorResource;
    }
    semaphore->count++;
    fake_wake();
    return osOK;
}

osStatus_t osSemaphoreRelease(osSemaphoreId_t semaphore_id)
{
    FAKE_CALL(call, semaphore_id);
    FAKE_LOCKED(call, give(semaphore_id));
    return (osStatus_t)fake_end(&call);
}

static uint32_t count_of(osSemaphoreId_t id)
{
    const struct object *semaphore = object_of(id, SEMAPHORE);
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
    FAKE_LOCKED(call, remove_object(semaphore_id, SEMAPHORE));
    return (osStatus_t)fake_end(&call);
}

/* ---- event flags */

osEventFlagsId_t osEventFlagsNew(const osEventFlagsAttr_t *attr)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        const osEventFlagsAttr_t given = attr != NULL ? *attr : (osEventFlagsAttr_t){0};
        const struct object made = {.kind = FLAGS};
        fake_lock();
        call.result = (int64_t)(intptr_t)make("osEventFlagsNew", made, given.cb_mem, given.cb_size);
        fake_unlock();
    }
    return (osEventFlagsId_t)(intptr_t)fake_end(&call);
}

/* Returns NULL if the id is invalid or `flags` has the error bit set. */
static struct object *events_of(osEventFlagsId_t id, uint32_t flags)
{
    return (flags & osFlagsError) != 0u ? NULL : object_of(id, FLAGS);
}

static uint32_t set_flags(osEventFlagsId_t id, uint32_t flags)
{
    struct object *events = events_of(id, flags);
    if (events == NULL) {
        return osFlagsErrorParameter;
    }
    events->flags |= flags;
    fake_wake();
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
    struct object *events = events_of(id, flags);
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
    const struct object *events = object_of(id, FLAGS);
    return events == NULL ? 0u : events->flags;
}

uint32_t osEventFlagsGet(osEventFlagsId_t ef_id)
{
    FAKE_CALL(call, ef_id);
    FAKE_LOCKED(call, flags_of(ef_id));
    return (uint32_t)fake_end(&call);
}

static bool flags_are_set(const void *object)
{
    const struct wish *wish = object;
    const uint32_t set = wish->object->flags & wish->flags;
    return wish->object->kind != FLAGS ||
           ((wish->options & osFlagsWaitAll) != 0u ? set == wish->flags : set != 0u);
}

static uint32_t wait_for_flags(osEventFlagsId_t id, struct wish wish, uint32_t timeout)
{
    struct object *events = events_of(id, wish.flags);
    if (events == NULL || (fake_in_interrupt() && timeout != 0u)) {
        return osFlagsErrorParameter;
    }
    wish.object = events;
    if (timeout == 0u && !flags_are_set(&wish)) {
        return osFlagsErrorResource;
    }
    if (is_stopped && !flags_are_set(&wish)) {
        return osFlagsErrorTimeout; /* at once */
    }
    if (!wait_for("osEventFlagsWait", flags_are_set, &wish, deadline_us(timeout))) {
        return osFlagsErrorTimeout;
    }
    if (events->kind != FLAGS) {
        return osFlagsErrorResource;
    }
    const uint32_t flags = events->flags;
    if ((wish.options & osFlagsNoClear) == 0u) {
        events->flags &= ~wish.flags;
    }
    return flags;
}

uint32_t osEventFlagsWait(osEventFlagsId_t ef_id, uint32_t flags, uint32_t options,
                          uint32_t timeout)
{
    FAKE_CALL(call, ef_id, flags, options, timeout);
    if (!call.replaced) {
        const struct wish wish = {.flags = flags, .options = options};
        fake_lock();
        call.result = wait_for_flags(ef_id, wish, timeout);
        fake_unlock();
    }
    return (uint32_t)fake_end(&call);
}

osStatus_t osEventFlagsDelete(osEventFlagsId_t ef_id)
{
    FAKE_CALL(call, ef_id);
    FAKE_LOCKED(call, remove_object(ef_id, FLAGS));
    return (osStatus_t)fake_end(&call);
}
