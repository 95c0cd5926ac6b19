/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fake.h"

enum { MAX_EVENTS = 256, PATIENCE_MS = 20000, MS_PER_S = 1000, NS_PER_MS = 1000000 };

/* A waiting thread; allocated on its own stack. */
struct waiter {
    struct waiter *next;
    const char *name;
    uint32_t thread;
    uint64_t deadline_us;
};

struct event {
    uint64_t time_us;
    uint64_t order;
    uint32_t number;
};

static struct {
    pthread_mutex_t lock;
    pthread_mutex_t processor; /* interrupts, one at a time */
    pthread_cond_t moved;
    pthread_once_t once;
    pthread_key_t key;
    uint32_t epoch; /* threads from before the last reset are ignored */
    uint32_t running, expected, last_thread;
    uint32_t interrupts; /* begun so far */
    uint64_t now_us, generation, order;
    struct waiter *waiters;
    struct event events[MAX_EVENTS];
    uint32_t event_count;
    bool stuck;
    uint32_t patience_ms;
} all = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .moved = PTHREAD_COND_INITIALIZER,
    .once = PTHREAD_ONCE_INIT,
    .epoch = 1,
    .patience_ms = PATIENCE_MS,
};

static _Thread_local struct {
    uint32_t epoch, thread, other, interrupts, masks;
} self;

static void forget_thread(void *unused)
{
    (void)unused;
    ferrule_fake_thread_ends();
}

static void prepare(void)
{
    pthread_mutexattr_t recursive;
    if (pthread_key_create(&all.key, forget_thread) != 0 ||
        pthread_mutexattr_init(&recursive) != 0 ||
        pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE) != 0 ||
        pthread_mutex_init(&all.processor, &recursive) != 0) {
        abort();
    }
}

void fake_lock(void)
{
    (void)pthread_mutex_lock(&all.lock);
}

void fake_unlock(void)
{
    (void)pthread_mutex_unlock(&all.lock);
}

/* Locked; registers the calling thread. */
static void enrol(void)
{
    if (self.epoch == all.epoch) {
        return;
    }
    self.epoch = all.epoch;
    self.thread = ++all.last_thread;
    self.other = 0;
    self.interrupts = 0;
    self.masks = 0;
    all.running++;
    (void)pthread_once(&all.once, prepare);
    (void)pthread_setspecific(all.key,
                              &all); /* any value: its destructor runs when the thread ends */
}

uint32_t fake_thread(void)
{
    enrol();
    return self.other != 0u ? self.other : self.thread;
}

bool fake_in_interrupt(void)
{
    return self.epoch == all.epoch && self.interrupts > 0u;
}

uint64_t fake_tick(void)
{
    return all.now_us++;
}

uint64_t fake_deadline_us(uint64_t wait_us)
{
    return wait_us > FAKE_FOREVER - all.now_us ? FAKE_FOREVER : all.now_us + wait_us;
}

void fake_wake(void)
{
    for (struct waiter *waiter = all.waiters; waiter != NULL; waiter = waiter->next) {
        all.running++; /* on its behalf, so that time stands still until it has checked */
    }
    all.waiters = NULL;
    all.generation++;
    (void)pthread_cond_broadcast(&all.moved);
}

static struct event *next_event(void)
{
    struct event *first = NULL;
    for (struct event *event = all.events; event < &all.events[all.event_count]; event++) {
        if (first == NULL || event->time_us < first->time_us ||
            (event->time_us == first->time_us && event->order < first->order)) {
            first = event;
        }
    }
    return first;
}

/* Locked, except while an event runs. */
static void run_due_events(void)
{
    struct event *event = next_event();
    while (event != NULL && event->time_us <= all.now_us && !fake_in_interrupt() &&
           self.masks == 0u) {
        const uint32_t number = event->number;
        *event = all.events[--all.event_count];
        fake_unlock();
        fake_call_hook(number, true);
        fake_lock();
        event = next_event();
    }
}

void fake_run_events(void)
{
    fake_lock();
    enrol();
    run_due_events();
    fake_unlock();
}

/* Locked; no thread can run, so the clock advances to the next event. */
static bool pass_time(uint64_t deadline_us)
{
    uint64_t next_us = deadline_us;
    for (const struct waiter *waiter = all.waiters; waiter != NULL; waiter = waiter->next) {
        next_us = waiter->deadline_us < next_us ? waiter->deadline_us : next_us;
    }
    const struct event *event = next_event();
    if (event != NULL && event->time_us < next_us) {
        next_us = event->time_us;
    }
    if (next_us == FAKE_FOREVER) {
        return false;
    }
    all.now_us = next_us > all.now_us ? next_us : all.now_us;
    return true;
}

static void give_up(const struct waiter *own, const char *why)
{
    fake_misuse("%s: thread %u waits in %s%s", why, (unsigned)own->thread, own->name,
                all.waiters == NULL ? "" : ", and others wait too");
    all.stuck = true;
}

/* Locked, except while it sleeps. */
static void sleep_until_woken(struct waiter *own)
{
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    const uint64_t ns = (uint64_t)end.tv_nsec + (uint64_t)(all.patience_ms % MS_PER_S) * NS_PER_MS;
    end.tv_sec += (time_t)(all.patience_ms / MS_PER_S + ns / (MS_PER_S * NS_PER_MS));
    end.tv_nsec = (long)(ns % (MS_PER_S * NS_PER_MS));
    const uint64_t generation = all.generation;
    own->next = all.waiters;
    all.waiters = own;
    all.running--;
    while (generation == all.generation) {
        if (pthread_cond_timedwait(&all.moved, &all.lock, &end) == ETIMEDOUT &&
            generation == all.generation) {
            give_up(own, "a thread waited for something other than a fake");
            fake_wake();
        }
    }
}

bool fake_wait(const char *name, bool (*ready)(const void *object), const void *object,
               uint64_t deadline_us)
{
    enrol();
    struct waiter own = {.name = name, .thread = fake_thread(), .deadline_us = deadline_us};
    for (;;) {
        run_due_events();
        if (ready(object)) {
            return true;
        }
        if (all.now_us >= deadline_us || all.stuck) {
            return false;
        }
        if (all.running + all.expected > 1u) {
            sleep_until_woken(&own);
            continue;
        }
        if (!pass_time(deadline_us)) {
            give_up(&own, "all threads are blocked");
        }
        fake_wake();
    }
}

void fake_reset_threads(void)
{
    fake_lock();
    (void)pthread_once(&all.once, prepare);
    for (uint32_t held = self.masks + self.interrupts; held > 0u; held--) {
        (void)pthread_mutex_unlock(&all.processor); /* a test ended inside an interrupt */
    }
    self.masks = 0;
    self.interrupts = 0;
    all.epoch++;
    all.running = 0;
    all.expected = 0;
    all.last_thread = 0;
    all.now_us = 0;
    all.order = 0;
    all.waiters = NULL;
    all.event_count = 0;
    all.stuck = false;
    enrol();
    fake_unlock();
}

uint64_t ferrule_fake_now_us(void)
{
    return all.now_us;
}

static bool never(const void *object)
{
    (void)object;
    return false;
}

void ferrule_fake_advance(uint64_t us)
{
    fake_lock();
    (void)fake_wait("ferrule_fake_advance", never, NULL, fake_deadline_us(us));
    fake_unlock();
}

void ferrule_fake_schedule(uint64_t after_us, uint32_t number)
{
    fake_lock();
    if (all.event_count == MAX_EVENTS) {
        fake_misuse("more than %d events wait", MAX_EVENTS);
    } else {
        all.events[all.event_count++] =
            (struct event){fake_deadline_us(after_us), all.order++, number};
    }
    fake_unlock();
}

void ferrule_fake_set_patience(uint32_t ms)
{
    all.patience_ms = ms;
}

void ferrule_fake_become(uint32_t thread)
{
    fake_lock();
    enrol();
    self.other = thread;
    fake_unlock();
}

void ferrule_fake_expect(uint32_t threads)
{
    fake_lock();
    all.expected += threads;
    fake_unlock();
}

void ferrule_fake_thread_begins(uint32_t thread)
{
    fake_lock();
    enrol();
    self.thread = thread;
    all.last_thread = all.last_thread > thread ? all.last_thread : thread;
    all.expected -= all.expected > 0u;
    fake_unlock();
}

void ferrule_fake_thread_ends(void)
{
    fake_lock();
    if (self.epoch == all.epoch) {
        self.epoch = 0;
        all.running--;
        fake_wake();
    }
    fake_unlock();
}

void ferrule_fake_idle(uint32_t idle)
{
    fake_lock();
    enrol();
    all.running += idle != 0u ? UINT32_MAX : 1u;
    fake_wake();
    fake_unlock();
}

void ferrule_fake_enter_interrupt(void)
{
    fake_lock();
    enrol();
    fake_unlock();
    (void)pthread_mutex_lock(&all.processor);
    self.interrupts++;
    (void)__atomic_add_fetch(&all.interrupts, 1u, __ATOMIC_RELAXED);
}

uint32_t fake_interrupts(void)
{
    return __atomic_load_n(&all.interrupts, __ATOMIC_RELAXED);
}

void ferrule_fake_leave_interrupt(void)
{
    self.interrupts--;
    (void)pthread_mutex_unlock(&all.processor);
}

void fake_mask_interrupts(void)
{
    (void)pthread_mutex_lock(&all.processor);
    self.masks++;
    fake_lock();
    fake_hold(&all.processor, "interrupts are masked, by thread %u", (unsigned)fake_thread());
    fake_unlock();
}

void fake_unmask_interrupts(void)
{
    self.masks--;
    if (self.masks == 0u) {
        fake_lock();
        fake_give_back(&all.processor);
        fake_unlock();
    }
    (void)pthread_mutex_unlock(&all.processor);
    if (self.masks == 0u && self.interrupts == 0u) {
        fake_interrupts_unmasked();
    }
}

uint32_t fake_masks(void)
{
    return self.masks;
}
