/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/kernel.h>

#include "fake.h"
#include "fake_kernel.h"
#include "ferrule_fake_zephyr.h"

enum { MAX_THREADS = 64 };

static struct k_thread threads[MAX_THREADS];
uint32_t ferrule_fake_us_per_tick = 1;
uint32_t ferrule_fake_cycles_hz = USEC_PER_SEC;

void ferrule_fake_set_clocks(uint32_t us_per_tick, uint32_t cycles_hz)
{
    ferrule_fake_us_per_tick = us_per_tick;
    ferrule_fake_cycles_hz = cycles_hz;
}

static const char mutex_noun[] = "k_mutex";

/* Locked. */
static struct k_thread *current(void)
{
    const uint32_t number = fake_thread();
    if (number >= MAX_THREADS) {
        fake_misuse("there are more than %d threads", MAX_THREADS - 1);
        return &threads[0];
    }
    threads[number].fake_number = number;
    return &threads[number];
}

static uint64_t deadline_us(k_timeout_t timeout)
{
    const uint64_t now_us = ferrule_fake_now_us();
    uint64_t tick = now_us / ferrule_fake_us_per_tick + 1u;

    if (timeout.ticks == 0) {
        return FAKE_AT_ONCE;
    }
    if (timeout.ticks == -1) {
        return FAKE_FOREVER;
    }
    if (timeout.ticks > 0) {
        tick += (uint64_t)timeout.ticks;
    } else if ((uint64_t)(-2 - timeout.ticks) > tick) {
        tick = (uint64_t)(-2 - timeout.ticks);
    }
    return fake_deadline_us(tick * ferrule_fake_us_per_tick - now_us);
}

static int status_of(enum fake_result result)
{
    static const int statuses[] = {
        [FAKE_DONE] = 0,       [FAKE_BUSY] = -EBUSY,     [FAKE_LATE] = -EAGAIN,
        [FAKE_GONE] = -EAGAIN, [FAKE_OWN] = -EPERM,      [FAKE_NOT_OWN] = -EPERM,
        [FAKE_FULL] = 0,       [FAKE_NO_WAIT] = -EINVAL,
    };
    return statuses[result];
}

static bool is_made(const struct fake_object *object, enum fake_kind kind, const char *name,
                    const char *what)
{
    if (fake_is(object, kind)) {
        return true;
    }
    fake_misuse("%s of %s%s", name, object == NULL ? "a null pointer" : what,
                object == NULL ? "" : " that was not initialised here");
    return false;
}

static bool is_mutex(const struct k_mutex *mutex, const char *name)
{
    return is_made(mutex == NULL ? NULL : &mutex->fake_object, FAKE_RECURSIVE_MUTEX, name,
                   "a k_mutex");
}

int k_mutex_init(struct k_mutex *mutex)
{
    FAKE_CALL(call, mutex);
    if (!call.replaced) {
        fake_make(&mutex->fake_object, FAKE_RECURSIVE_MUTEX, 0, 0);
        mutex->obj_core = (struct k_obj_core){true};
    }
    return (int)fake_end(&call);
}

static int lock_mutex(struct k_mutex *mutex, k_timeout_t timeout)
{
    if (fake_refuses_interrupt("k_mutex_lock") || !is_mutex(mutex, "k_mutex_lock")) {
        return -EINVAL;
    }
    return status_of(
        fake_mutex_lock("k_mutex_lock", mutex_noun, &mutex->fake_object, deadline_us(timeout)));
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
        mutex->fake_object.count == 0u) {
        return -EINVAL;
    }
    return status_of(fake_mutex_unlock(mutex_noun, &mutex->fake_object));
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
    return is_made(sem == NULL ? NULL : &sem->fake_object, FAKE_SEMAPHORE, name, "a k_sem");
}

int k_sem_init(struct k_sem *sem, unsigned int initial_count, unsigned int limit)
{
    FAKE_CALL(call, sem, initial_count, limit);
    if (!call.replaced) {
        if (limit == 0u || initial_count > limit) {
            call.result = -EINVAL;
        } else {
            fake_make(&sem->fake_object, FAKE_SEMAPHORE, initial_count, limit);
        }
    }
    return (int)fake_end(&call);
}

static int take(struct k_sem *sem, k_timeout_t timeout)
{
    if (!is_sem(sem, "k_sem_take") ||
        (timeout.ticks != 0 && fake_refuses_interrupt("k_sem_take with a wait"))) {
        return -EINVAL;
    }
    return status_of(fake_semaphore_take("k_sem_take", &sem->fake_object, deadline_us(timeout)));
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
        if (is_sem(sem, "k_sem_give")) {
            (void)fake_semaphore_give(&sem->fake_object); /* at its limit, it stays there */
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
            sem->fake_object.count = 0;
        }
        fake_unlock();
    }
    (void)fake_end(&call);
}

unsigned int k_sem_count_get(struct k_sem *sem)
{
    FAKE_CALL(call, sem);
    if (!call.replaced) {
        call.result = is_sem(sem, "k_sem_count_get") ? (int64_t)sem->fake_object.count : 0;
    }
    return (unsigned int)fake_end(&call);
}

k_tid_t k_current_get(void)
{
    FAKE_CALL(call, NULL);
    fake_lock();
    struct k_thread *thread = current();
    fake_unlock();
    call.result = thread->fake_number;
    (void)fake_end(&call);
    return thread;
}

static void enter(void *given)
{
    const struct k_thread *thread = given;
    thread->fake_entry(thread->fake_arguments[0], thread->fake_arguments[1],
                       thread->fake_arguments[2]);
}

k_tid_t k_thread_create(struct k_thread *new_thread, k_thread_stack_t *stack, size_t stack_size,
                        k_thread_entry_t entry, void *p1, void *p2, void *p3, int prio,
                        uint32_t options, k_timeout_t delay)
{
    FAKE_CALL(call, new_thread, (int64_t)stack_size, prio, options);
    (void)stack;
    if (!call.replaced) {
        if (delay.ticks != 0) {
            fake_misuse("k_thread_create with a delay is not part of the fakes");
        }
        *new_thread = (struct k_thread){.fake_entry = entry, .fake_arguments = {p1, p2, p3}};
        fake_lock();
        new_thread->fake_number = fake_start_thread(enter, new_thread, -prio);
        fake_unlock();
    }
    (void)fake_end(&call);
    return new_thread;
}

int k_thread_priority_get(k_tid_t thread)
{
    FAKE_CALL(call, thread);
    FAKE_LOCKED(call, -fake_priority_of(thread->fake_number)); /* in Zephyr, 0 is most urgent */
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

static void sleep_until(const char *name, uint64_t end_us)
{
    fake_lock();
    if (!fake_refuses_interrupt(name)) {
        (void)fake_sleep(name, end_us);
    }
    fake_unlock();
}

int32_t k_msleep(int32_t ms)
{
    FAKE_CALL(call, NULL, ms);
    if (!call.replaced) {
        sleep_until("k_msleep", deadline_us(K_MSEC(ms)));
    }
    return (int32_t)fake_end(&call);
}

int32_t k_sleep(k_timeout_t timeout)
{
    FAKE_CALL(call, NULL, timeout.ticks);
    if (!call.replaced) {
        sleep_until("k_sleep", deadline_us(timeout));
    }
    return (int32_t)fake_end(&call);
}

void k_yield(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        sleep_until("k_yield", fake_deadline_us(FAKE_YIELD_US));
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
        call.result = (int64_t)(ferrule_fake_now_us() / ferrule_fake_us_per_tick);
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
    return K_USEC(timepoint.tick > now_us ? (int64_t)(timepoint.tick - now_us) : 0);
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
        call.result = (uint32_t)(ferrule_fake_now_us() * ferrule_fake_cycles_hz / USEC_PER_SEC);
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
