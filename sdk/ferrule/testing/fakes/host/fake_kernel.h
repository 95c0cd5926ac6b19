/* SPDX-License-Identifier: Apache-2.0 */
/** @file The objects of a kernel: mutexes that lend priorities, semaphores, event flags, and the
 * lock of its scheduler. The fakes of every kernel are names for these; so are those of your own
 * (docs/unit-testing.md). Functions are called with the lock of the fakes held, as in FAKE_LOCKED.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

enum fake_kind { FAKE_NOTHING, FAKE_MUTEX, FAKE_RECURSIVE_MUTEX, FAKE_SEMAPHORE, FAKE_FLAGS };

/** An object; its storage belongs to the platform's fakes or to the code under test. */
struct fake_object {
    const struct fake_object *self; /* where it was made; wrong in a copy */
    enum fake_kind kind;
    bool barges;           /* of a mutex: a thread that comes may get it before those that wait */
    uint32_t owner, count; /* of a mutex: the thread, and how often it locked it */
    uint32_t limit;        /* of a semaphore */
    uint32_t flags;
};

/** How a call ended. */
enum fake_result {
    FAKE_DONE,
    FAKE_BUSY,    /* it would have to wait, and must not */
    FAKE_LATE,    /* the deadline has passed */
    FAKE_GONE,    /* the object was deleted meanwhile */
    FAKE_OWN,     /* the thread has the mutex, which is not recursive */
    FAKE_NOT_OWN, /* the thread does not have the mutex */
    FAKE_FULL,    /* the semaphore is at its limit */
    FAKE_NO_WAIT, /* a wait where there can be none, which is also reported as a misuse */
};

/** The deadline of a call that does not wait. */
#define FAKE_AT_ONCE 0u

/** Make an object in its storage; `count` and `limit` are a semaphore's. */
void fake_make(struct fake_object *object, enum fake_kind kind, uint32_t count, uint32_t limit);
/** Whether it was made as such, at this address, and not deleted. */
bool fake_is(const struct fake_object *object, enum fake_kind kind);
/** Delete it; threads that wait for it end their wait. */
void fake_delete(struct fake_object *object);

/* `name` is that of the calling function. Deadlines are times of the fakes' clock in microseconds,
 * FAKE_AT_ONCE or FAKE_FOREVER. */

/** Lock a mutex, in the order of priorities and arrival. `noun` is what the balance calls it. */
enum fake_result fake_mutex_lock(const char *name, const char *noun, struct fake_object *mutex,
                                 uint64_t deadline_us);
enum fake_result fake_mutex_unlock(const char *noun, struct fake_object *mutex);

enum fake_result fake_semaphore_take(const char *name, struct fake_object *semaphore,
                                     uint64_t deadline_us);
enum fake_result fake_semaphore_give(struct fake_object *semaphore);

/** Wait until any, or all, of the flags are set; the flags at the end of the wait are in `*found`,
 * and are then cleared if `clears`. */
enum fake_result fake_flags_wait(const char *name, struct fake_object *object, uint32_t flags,
                                 bool all, bool clears, uint64_t deadline_us, uint32_t *found);
void fake_flags_set(struct fake_object *object, uint32_t flags);

/** Let the thread sleep. */
enum fake_result fake_sleep(const char *name, uint64_t deadline_us);

/** Whether a thread has locked the scheduler, so that no other runs. */
bool fake_scheduler_is_mine(void);
/** Lock or unlock it, and return whether it was locked before; FAKE_GONE never ends the wait. */
bool fake_lock_scheduler(const char *name, bool locked);

/** The priority of a thread, with what it has inherited; a larger number is more urgent. */
int32_t fake_priority_of(uint32_t thread);

/** Start a thread, and return its number. */
uint32_t fake_start_thread(void (*body)(void *argument), void *argument, int32_t priority);
/** End the calling thread; not locked. */
_Noreturn void fake_end_thread(void);

/** Whether the kernel runs; until then there is no thread, and nothing can wait. */
bool fake_is_running(void);

void fake_reset_kernel(void);

#endif /* FAKE_KERNEL_H */
