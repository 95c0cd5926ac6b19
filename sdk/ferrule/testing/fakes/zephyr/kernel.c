/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/kernel.h>

#include "fake.h"
#include "ferrule_fake_zephyr.h"

enum { MAX_THREADS = 64 };

struct k_thread {
    uint32_t number;
};

static struct k_thread threads[MAX_THREADS];
uint32_t ferrule_fake_us_per_tick = 1;

void ferrule_fake_set_tick(uint32_t us)
{
    ferrule_fake_us_per_tick = us;
}

/* Locked; the count of a mutex has changed. */
static void note_lock(const struct k_mutex *mutex)
{
    if (mutex->lock_count == 0u) {
        fake_give_back(mutex);
    } else {
        fake_hold(mutex, "the k_mutex %p is locked %u times, by thread %u", (const void *)mutex,
                  (unsigned)mutex->lock_count, (unsigned)mutex->owner->number);
    }
}

/* Locked. */
static struct k_thread *current(void)
{
    const uint32_t number = fake_thread();
    if (number >= MAX_THREADS) {
        fake_misuse("there are more than %d threads", MAX_THREADS - 1);
        return &threads[0];
    }
    threads[number].number = number;
    return &threads[number];
}

static uint64_t deadline_us(k_timeout_t timeout)
{
    return timeout.ticks < 0 ? FAKE_FOREVER : fake_deadline_us((uint64_t)timeout.ticks);
}

static bool is_mutex(const struct k_mutex *mutex, const char *name)
{
    if (mutex != NULL && mutex->fake_self == mutex) {
        return true;
    }
    fake_misuse("%s of %s", name,
                mutex == NULL ? "a null pointer" : "a k_mutex that was not initialised here");
    return false;
}

static bool is_free(const void *object)
{
    return ((const struct k_mutex *)object)->lock_count == 0u;
}

int k_mutex_init(struct k_mutex *mutex)
{
    FAKE_CALL(call, mutex);
    if (!call.replaced) {
        *mutex = (struct k_mutex){.fake_self = mutex, .obj_core = {true}};
    }
    return (int)fake_end(&call);
}

static int lock_mutex(struct k_mutex *mutex, k_timeout_t timeout)
{
    if (fake_refuses_interrupt("k_mutex_lock") || !is_mutex(mutex, "k_mutex_lock")) {
        return -EINVAL;
    }
    if (mutex->lock_count > 0u && mutex->owner != current()) {
        if (timeout.ticks == 0) {
            return -EBUSY;
        }
        if (!fake_wait("k_mutex_lock", is_free, mutex, deadline_us(timeout))) {
            return -EAGAIN;
        }
    }
    mutex->owner = current();
    mutex->lock_count++;
    note_lock(mutex);
    return 0;
}

int k_mutex_lock(struct k_mutex *mutex, k_timeout_t timeout)
{
    FAKE_CALL(call, mutex, timeout.ticks);
    FAKE_LOCKED(call, lock_mutex(mutex, timeout));
    return (int)fake_end(&call);
}

static int unlock_mutex(struct k_mutex *mutex)
{
    if (fake_refuses_interrupt("k_mutex_unlock") || !is_mutex(mutex, "k_mutex_unlock") ||
        mutex->lock_count == 0u) {
        return -EINVAL;
    }
    if (mutex->owner != current()) {
        return -EPERM;
    }
    mutex->lock_count--;
    note_lock(mutex);
    if (mutex->lock_count == 0u) {
        mutex->owner = NULL;
        fake_wake();
    }
    return 0;
}

int k_mutex_unlock(struct k_mutex *mutex)
{
    FAKE_CALL(call, mutex);
    FAKE_LOCKED(call, unlock_mutex(mutex));
    return (int)fake_end(&call);
}

void k_obj_core_unlink(struct k_obj_core *obj_core)
{
    FAKE_CALL(call, obj_core);
    if (!obj_core->fake_linked) {
        fake_misuse("k_obj_core_unlink of an object that is not linked");
    }
    obj_core->fake_linked = false;
    (void)fake_end(&call);
}

static bool is_sem(const struct k_sem *sem, const char *name)
{
    if (sem != NULL && sem->fake_self == sem) {
        return true;
    }
    fake_misuse("%s of %s", name,
                sem == NULL ? "a null pointer" : "a k_sem that was not initialised here");
    return false;
}

static bool has_count(const void *object)
{
    return ((const struct k_sem *)object)->count > 0u;
}

int k_sem_init(struct k_sem *sem, unsigned int initial_count, unsigned int limit)
{
    FAKE_CALL(call, sem, initial_count, limit);
    if (!call.replaced) {
        if (limit == 0u || initial_count > limit) {
            call.result = -EINVAL;
        } else {
            *sem = (struct k_sem){.fake_self = sem, .count = initial_count, .limit = limit};
        }
    }
    return (int)fake_end(&call);
}

static int take(struct k_sem *sem, k_timeout_t timeout)
{
    if (!is_sem(sem, "k_sem_take")) {
        return -EINVAL;
    }
    if (timeout.ticks == 0 && sem->count == 0u) {
        return -EBUSY;
    }
    if (timeout.ticks != 0 && fake_refuses_interrupt("k_sem_take with a wait")) {
        return -EINVAL;
    }
    if (!fake_wait("k_sem_take", has_count, sem, deadline_us(timeout))) {
        return -EAGAIN;
    }
    sem->count--;
    return 0;
}

int k_sem_take(struct k_sem *sem, k_timeout_t timeout)
{
    FAKE_CALL(call, sem, timeout.ticks);
    FAKE_LOCKED(call, take(sem, timeout));
    return (int)fake_end(&call);
}

void k_sem_give(struct k_sem *sem)
{
    FAKE_CALL(call, sem);
    if (!call.replaced) {
        fake_lock();
        if (is_sem(sem, "k_sem_give") && sem->count < sem->limit) {
            sem->count++;
            fake_wake();
        }
        fake_unlock();
    }
    (void)fake_end(&call);
}

void k_sem_reset(struct k_sem *sem)
{
    FAKE_CALL(call, sem);
    if (!call.replaced) {
        fake_lock();
        if (is_sem(sem, "k_sem_reset")) {
            sem->count = 0;
        }
        fake_unlock();
    }
    (void)fake_end(&call);
}

unsigned int k_sem_count_get(struct k_sem *sem)
{
    FAKE_CALL(call, sem);
    if (!call.replaced) {
        call.result = is_sem(sem, "k_sem_count_get") ? (int64_t)sem->count : 0;
    }
    return (unsigned int)fake_end(&call);
}

k_tid_t k_current_get(void)
{
    FAKE_CALL(call, NULL);
    fake_lock();
    struct k_thread *thread = current();
    fake_unlock();
    call.result = thread->number;
    (void)fake_end(&call);
    return thread;
}

int k_thread_priority_get(k_tid_t thread)
{
    FAKE_CALL(call, thread);
    return (int)fake_end(&call);
}

bool k_is_in_isr(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = fake_in_interrupt();
    }
    return fake_end(&call) != 0;
}

static bool never(const void *object)
{
    (void)object;
    return false;
}

static void sleep_for(const char *name, k_timeout_t timeout)
{
    fake_lock();
    if (!fake_refuses_interrupt(name)) {
        (void)fake_wait(name, never, NULL, deadline_us(timeout));
    }
    fake_unlock();
}

int32_t k_msleep(int32_t ms)
{
    FAKE_CALL(call, NULL, ms);
    if (!call.replaced) {
        sleep_for("k_msleep", K_MSEC(ms));
    }
    return (int32_t)fake_end(&call);
}

int32_t k_sleep(k_timeout_t timeout)
{
    FAKE_CALL(call, NULL, timeout.ticks);
    if (!call.replaced) {
        sleep_for("k_sleep", timeout);
    }
    return (int32_t)fake_end(&call);
}

void k_yield(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        sleep_for("k_yield", K_TICKS(FAKE_YIELD_US));
    }
    (void)fake_end(&call);
}

int64_t k_uptime_get(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = (int64_t)(ferrule_fake_now_us() / 1000u);
    }
    return fake_end(&call);
}

int64_t k_uptime_ticks(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = (int64_t)ferrule_fake_now_us();
    }
    return fake_end(&call);
}

uint32_t k_uptime_get_32(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = (int64_t)(ferrule_fake_now_us() / 1000u);
    }
    return (uint32_t)fake_end(&call);
}

k_timepoint_t sys_timepoint_calc(k_timeout_t timeout)
{
    return (k_timepoint_t){deadline_us(timeout)};
}

k_timeout_t sys_timepoint_timeout(k_timepoint_t timepoint)
{
    const uint64_t now_us = ferrule_fake_now_us();
    if (timepoint.tick == FAKE_FOREVER) {
        return K_FOREVER;
    }
    return K_TICKS(timepoint.tick > now_us ? (int64_t)(timepoint.tick - now_us) : 0);
}

bool sys_timepoint_expired(k_timepoint_t timepoint)
{
    return timepoint.tick <= ferrule_fake_now_us();
}

unsigned int irq_lock(void)
{
    FAKE_CALL(call, NULL);
    call.result = fake_masks();
    fake_mask_interrupts();
    return (unsigned int)fake_end(&call);
}

void irq_unlock(unsigned int key)
{
    FAKE_CALL(call, NULL, key);
    if (fake_masks() != key + 1u) {
        fake_misuse("irq_unlock with a key other than the last one from irq_lock");
    } else {
        fake_unmask_interrupts();
    }
    (void)fake_end(&call);
}

uint32_t k_cycle_get_32(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = (uint32_t)ferrule_fake_now_us();
    }
    return (uint32_t)fake_end(&call);
}

k_spinlock_key_t k_spin_lock(struct k_spinlock *l)
{
    FAKE_CALL(call, l);
    fake_mask_interrupts();
    if (l->fake_taken) {
        fake_misuse("k_spin_lock of a lock that this processor already holds");
    }
    l->fake_taken = true;
    (void)fake_end(&call);
    return (k_spinlock_key_t){0};
}

void k_spin_unlock(struct k_spinlock *l, k_spinlock_key_t key)
{
    FAKE_CALL(call, l, key.key);
    if (!l->fake_taken) {
        fake_misuse("k_spin_unlock of a lock that is not taken");
    } else {
        l->fake_taken = false;
        fake_unmask_interrupts();
    }
    (void)fake_end(&call);
}
