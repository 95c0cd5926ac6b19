/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_kernel.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "fake.h"

enum { MAX_THREADS = 64, FIRST_STARTED = 40 }; /* numbers of threads, from 1 */

struct thread {
    int32_t priority;
    const struct fake_object *wanted; /* the mutex that it waits for */
    uint64_t arrival;
};

/* What a thread waits for. */
struct wish {
    const struct fake_object *object;
    uint32_t thread;
    uint32_t flags;
    bool all;
};

static struct {
    struct thread threads[MAX_THREADS]; /* by number */
    uint64_t arrivals;
    uint32_t started;
    uint32_t scheduler; /* the thread that has locked it, 0: none */
    bool stopped;
} kernel;

void fake_reset_kernel(void)
{
    kernel = (__typeof__(kernel)){0};
}

static struct thread *thread_of(uint32_t number)
{
    if (number >= MAX_THREADS) {
        fake_misuse("there are more than %d threads", MAX_THREADS - 1);
        return &kernel.threads[0];
    }
    return &kernel.threads[number];
}

static bool is_mutex(const struct fake_object *object)
{
    return object->kind == FAKE_MUTEX || object->kind == FAKE_RECURSIVE_MUTEX;
}

/* Follows those that wait for a mutex of the thread, and those that wait for theirs. */
static int32_t priority_of(uint32_t number, uint32_t depth)
{
    int32_t found = thread_of(number)->priority;
    for (uint32_t other = 0; other < MAX_THREADS && depth < MAX_THREADS; other++) {
        const struct fake_object *wanted = kernel.threads[other].wanted;
        if (other != number && wanted != NULL && wanted->count > 0u && wanted->owner == number) {
            const int32_t lent = priority_of(other, depth + 1u);
            found = lent > found ? lent : found;
        }
    }
    return found;
}

int32_t fake_priority_of(uint32_t thread)
{
    return priority_of(thread, 0);
}

void ferrule_fake_set_priority(uint32_t thread, int32_t priority)
{
    fake_lock();
    thread_of(thread)->priority = priority;
    fake_unlock();
}

bool fake_is_running(void)
{
    return !kernel.stopped;
}

void ferrule_fake_start_kernel(uint32_t starts)
{
    fake_lock();
    kernel.stopped = starts == 0u;
    fake_unlock();
}

void fake_make(struct fake_object *object, enum fake_kind kind, uint32_t count, uint32_t limit)
{
    *object = (struct fake_object){.self = object, .kind = kind, .count = count, .limit = limit};
}

bool fake_is(const struct fake_object *object, enum fake_kind kind)
{
    return object != NULL && object->self == object && object->kind == kind;
}

void fake_delete(struct fake_object *object)
{
    *object = (struct fake_object){0};
    fake_give_back(object);
    fake_wake();
}

/* Like fake_wait, but a misuse where no thread can wait, or none of the others can run. */
static enum fake_result wait_for(const char *name, bool (*ready)(const void *object),
                                 const struct wish *wish, uint64_t deadline_us)
{
    const char *why = NULL;
    if (ready(wish)) {
        return FAKE_DONE;
    }
    if (deadline_us == FAKE_AT_ONCE) {
        return FAKE_BUSY;
    }
    if (fake_in_interrupt()) {
        why = "in an interrupt";
    } else if (kernel.scheduler == fake_thread()) {
        why = "while the kernel is locked";
    } else if (fake_masks() > 0u) {
        why = "while interrupts are masked";
    } else if (kernel.stopped) {
        why = "before the kernel runs";
    }
    if (why != NULL) {
        fake_misuse("%s waits %s", name, why);
        return FAKE_NO_WAIT;
    }
    return fake_wait(name, ready, wish, deadline_us) ? FAKE_DONE : FAKE_LATE;
}

/* ---- mutexes */

static void note_lock(const char *noun, const struct fake_object *mutex)
{
    if (mutex->count == 0u) {
        fake_give_back(mutex);
    } else {
        fake_hold(mutex, "the %s %p is locked %u times, by thread %u", noun, (const void *)mutex,
                  (unsigned)mutex->count, (unsigned)mutex->owner);
    }
}

/* The thread of the highest priority that waits for a mutex, the longest of these; 0: none. */
static uint32_t first_of(const struct fake_object *mutex)
{
    uint32_t first = 0;
    for (uint32_t number = 1; number < MAX_THREADS; number++) {
        const struct thread *thread = &kernel.threads[number];
        if (thread->wanted != mutex) {
            continue;
        }
        const int32_t ahead = first == 0u ? 1 : priority_of(number, 0) - priority_of(first, 0);
        if (ahead > 0 || (ahead == 0 && thread->arrival < kernel.threads[first].arrival)) {
            first = number;
        }
    }
    return first;
}

static bool is_its_turn(const void *object)
{
    const struct wish *wish = object;
    const struct fake_object *mutex = wish->object;
    if (!is_mutex(mutex)) {
        return true;
    }
    return mutex->count == 0u ? first_of(mutex) == wish->thread : mutex->owner == wish->thread;
}

static enum fake_result wait_in_line(const char *name, const struct fake_object *mutex,
                                     uint64_t deadline_us)
{
    const struct wish wish = {.object = mutex, .thread = fake_thread()};
    struct thread *self = thread_of(wish.thread);
    self->wanted = mutex;
    self->arrival = kernel.arrivals++;
    const enum fake_result result = wait_for(name, is_its_turn, &wish, deadline_us);
    self->wanted = NULL;
    return result == FAKE_DONE && !is_mutex(mutex) ? FAKE_GONE : result;
}

enum fake_result fake_mutex_lock(const char *name, const char *noun, struct fake_object *mutex,
                                 uint64_t deadline_us)
{
    const uint32_t self = fake_thread();
    if (mutex->count > 0u && mutex->owner == self) {
        if (mutex->kind != FAKE_RECURSIVE_MUTEX) {
            return FAKE_OWN;
        }
        mutex->count++;
    } else {
        if (mutex->count > 0u || (!mutex->barges && first_of(mutex) != 0u)) {
            const enum fake_result result = wait_in_line(name, mutex, deadline_us);
            if (result != FAKE_DONE) {
                return result;
            }
        }
        mutex->owner = self;
        mutex->count = 1;
    }
    note_lock(noun, mutex);
    return FAKE_DONE;
}

enum fake_result fake_mutex_unlock(const char *noun, struct fake_object *mutex)
{
    if (mutex->count == 0u || mutex->owner != fake_thread()) {
        return FAKE_NOT_OWN;
    }
    mutex->count--;
    if (mutex->count == 0u) {
        mutex->owner = 0;
        fake_wake();
    }
    note_lock(noun, mutex);
    return FAKE_DONE;
}

/* ---- semaphores */

static bool has_count(const void *object)
{
    const struct fake_object *semaphore = ((const struct wish *)object)->object;
    return semaphore->kind != FAKE_SEMAPHORE || semaphore->count > 0u;
}

enum fake_result fake_semaphore_take(const char *name, struct fake_object *semaphore,
                                     uint64_t deadline_us)
{
    const struct wish wish = {.object = semaphore};
    const enum fake_result result = wait_for(name, has_count, &wish, deadline_us);
    if (result != FAKE_DONE) {
        return result;
    }
    if (semaphore->kind != FAKE_SEMAPHORE) {
        return FAKE_GONE;
    }
    semaphore->count--;
    return FAKE_DONE;
}

enum fake_result fake_semaphore_give(struct fake_object *semaphore)
{
    if (semaphore->count >= semaphore->limit) {
        return FAKE_FULL;
    }
    semaphore->count++;
    fake_wake();
    return FAKE_DONE;
}

/* ---- event flags */

static bool flags_are_set(const void *object)
{
    const struct wish *wish = object;
    const uint32_t set = wish->object->flags & wish->flags;
    return wish->object->kind != FAKE_FLAGS || (wish->all ? set == wish->flags : set != 0u);
}

enum fake_result fake_flags_wait(const char *name, struct fake_object *object, uint32_t flags,
                                 bool all, bool clears, uint64_t deadline_us, uint32_t *found)
{
    const struct wish wish = {.object = object, .flags = flags, .all = all};
    const enum fake_result result = wait_for(name, flags_are_set, &wish, deadline_us);
    if (result != FAKE_DONE) {
        return result;
    }
    if (object->kind != FAKE_FLAGS) {
        return FAKE_GONE;
    }
    *found = object->flags;
    object->flags &= clears ? ~flags : UINT32_MAX;
    return FAKE_DONE;
}

void fake_flags_set(struct fake_object *object, uint32_t flags)
{
    object->flags |= flags;
    fake_wake();
}

/* ---- the scheduler */

static bool never(const void *object)
{
    (void)object;
    return false;
}

enum fake_result fake_sleep(const char *name, uint64_t deadline_us)
{
    const enum fake_result result = wait_for(name, never, NULL, deadline_us);
    return result == FAKE_LATE ? FAKE_DONE : result;
}

bool fake_scheduler_is_mine(void)
{
    return kernel.scheduler == fake_thread();
}

static bool scheduler_is_free(const void *object)
{
    (void)object;
    return kernel.scheduler == 0u;
}

/* Another thread that locks the scheduler waits, because it would not run. */
bool fake_lock_scheduler(const char *name, bool locked)
{
    const bool before = fake_scheduler_is_mine();
    if (locked && !before && fake_wait(name, scheduler_is_free, NULL, FAKE_FOREVER)) {
        kernel.scheduler = fake_thread();
        fake_hold(&kernel.scheduler, "the kernel is locked, by thread %u",
                  (unsigned)kernel.scheduler);
    } else if (!locked && before) {
        kernel.scheduler = 0;
        fake_give_back(&kernel.scheduler);
        fake_wake();
    }
    return before;
}

/* ---- threads */

struct start {
    void (*body)(void *argument);
    void *argument;
    uint32_t number;
};

static void *run(void *given)
{
    const struct start start = *(struct start *)given;
    free(given);
    ferrule_fake_thread_begins(start.number);
    start.body(start.argument);
    return NULL; /* the fakes notice the end of a thread */
}

uint32_t fake_start_thread(void (*body)(void *argument), void *argument, int32_t priority)
{
    pthread_t thread;
    struct start *start = malloc(sizeof *start);
    if (start == NULL) {
        abort();
    }
    *start = (struct start){body, argument, FIRST_STARTED + kernel.started++};
    const uint32_t number = start->number;
    thread_of(number)->priority = priority;
    fake_unlock();
    ferrule_fake_expect(1);
    if (pthread_create(&thread, NULL, run, start) != 0 || pthread_detach(thread) != 0) {
        abort();
    }
    fake_lock();
    return number;
}

_Noreturn void fake_end_thread(void)
{
    pthread_exit(NULL);
}
