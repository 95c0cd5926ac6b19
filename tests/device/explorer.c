/* SPDX-License-Identifier: Apache-2.0 */
#include "explorer.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "ferrule/platform.h"

/* A depth-first search over the choices of the scheduler, by running everything again from the
 * start. A thread stops before each call of the platform that another thread can observe. A state
 * consists of the stacks of the threads, the devices (without their counts of turns, which only
 * choose among equal queues) and the time; a search ends in a state that was visited before. A
 * thread that yields goes on after another one has run. */

enum {
    THREADS = EXPLORER_THREADS,
    DEPTH = 4096,
    STATES = 1 << 19,
    STACK_BYTES = 1 << 16,
    OPEN_TIMEOUT_US = 1000
};

#define HASH_BASIS 0xcbf29ce484222325u

struct ferrule_device {
    struct ferrule_device_core core;
    const void *locked_by;
    bool guarded;
};

struct thread {
    ucontext_t context;
    uint64_t state;            /* of its stack */
    ferrule_device_t *awaited; /* its lock */
    uint32_t deadline_us;
    bool ended;
    bool yields; /* until another thread has run */
    _Alignas(16) char stack[STACK_BYTES];
};

static struct {
    struct thread threads[THREADS];
    ucontext_t scheduler;
    struct thread *current; /* NULL: the scheduler */
    ferrule_device_t devices[EXPLORER_DEVICES];
    uint32_t now_us;
    uint8_t chosen[DEPTH];
    uint8_t untried[DEPTH]; /* a set of threads */
    uint32_t depth;
    uint64_t visited[STATES];
    struct explorer_result result;
} all;

static void mix(uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * 0x100000001b3u;
    *hash ^= *hash >> 29;
}

/* The stack of a thread from the given address on. */
static uint64_t hash_of_stack(const struct thread *thread, const void *from)
{
    uint64_t hash = HASH_BASIS;

    for (const char *at = from; at < thread->stack + STACK_BYTES; at += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, at, sizeof word);
        mix(&hash, word);
    }
    return hash;
}

/* Lets the scheduler choose the next thread. */
static void pause_here(void)
{
    jmp_buf registers; /* on the stack, as part of the state */

    if (all.current != NULL) {
        memset(&registers, 0, sizeof registers);
        (void)setjmp(registers);
        all.current->state = hash_of_stack(all.current, &registers);
        (void)swapcontext(&all.current->context, &all.scheduler);
    }
}

static void expect(bool fine)
{
    if (!fine) {
        all.result.violations++;
    }
}

/* ---- the platform */

bool ferrule_platform_in_interrupt(void)
{
    return false;
}

const void *ferrule_platform_thread(void)
{
    return all.current == NULL ? (const void *)&all : all.current;
}

int32_t ferrule_platform_priority(void)
{
#ifdef EXPLORER_FIRST_IS_URGENT
    return all.current == &all.threads[0] ? 1 : 0;
#else
    return 0;
#endif
}

void ferrule_platform_yield(void)
{
    all.current->yields = true;
    pause_here();
}

int32_t ferrule_platform_init(ferrule_device_t *dev)
{
    memset(dev, 0, sizeof *dev);
    return FERRULE_OK;
}

int32_t ferrule_platform_destroy(ferrule_device_t *dev)
{
    dev->guarded = false;
    return FERRULE_OK;
}

/* What the owner of an open device reads under the guard, no other thread changes. */
void ferrule_platform_guard(ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = &dev->core;

    if (!core->is_open || core->owner != ferrule_platform_thread()) {
        pause_here();
    }
    expect(!dev->guarded);
    dev->guarded = true;
}

void ferrule_platform_unguard(ferrule_device_t *dev)
{
    expect(dev->guarded);
    dev->guarded = false;
}

uint32_t ferrule_platform_open_timeout_us(void)
{
    return OPEN_TIMEOUT_US;
}

int32_t ferrule_platform_lock(ferrule_device_t *dev, uint32_t timeout_us)
{
    int32_t status = FERRULE_OK;

    expect(!dev->guarded && dev->locked_by != ferrule_platform_thread());
    if (all.current == NULL) {
        expect(dev->locked_by == NULL);
    } else {
        all.current->awaited = timeout_us > 0u ? dev : NULL;
        all.current->deadline_us = all.now_us + timeout_us;
        pause_here();
        all.current->awaited = NULL;
    }
    if (dev->locked_by == NULL) {
        dev->locked_by = ferrule_platform_thread();
    } else {
        status = timeout_us > 0u ? FERRULE_ERR_TIMEOUT : FERRULE_ERR_BUSY;
    }
    return status;
}

int32_t ferrule_platform_unlock(ferrule_device_t *dev)
{
    pause_here();
    expect(!dev->guarded && dev->locked_by == ferrule_platform_thread());
    dev->locked_by = NULL;
    return FERRULE_OK;
}

int32_t ferrule_platform_ready(const ferrule_device_t *dev)
{
    pause_here();
    expect(!dev->guarded && dev->locked_by == ferrule_platform_thread());
    return FERRULE_OK;
}

int32_t ferrule_platform_power(ferrule_device_t *dev, bool on)
{
    (void)on;
    pause_here();
    expect(!dev->guarded && dev->locked_by == ferrule_platform_thread());
    return FERRULE_OK;
}

int32_t ferrule_platform_cut(ferrule_device_t *dev)
{
    (void)dev;
    return FERRULE_ERR_UNSUPPORTED;
}

uint32_t ferrule_platform_now_us(void)
{
    return all.now_us;
}

int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us)
{
    (void)dev;
    (void)timeout_us;
    return FERRULE_ERR_UNSUPPORTED; /* the devices of these models work while the core waits */
}

void ferrule_platform_notify(ferrule_device_t *dev)
{
    (void)dev;
}

/* ---- the search */

static bool can_go_on(const struct thread *thread)
{
    return !thread->ended && (thread->awaited == NULL || thread->awaited->locked_by == NULL ||
                              thread->deadline_us <= all.now_us);
}

static uint8_t able(void)
{
    uint8_t found = 0;
    uint8_t others = 0;

    for (uint32_t i = 0; i < THREADS; i++) {
        if (can_go_on(&all.threads[i])) {
            *(all.threads[i].yields ? &others : &found) |= (uint8_t)(1u << i);
        }
    }
    return found != 0u ? found : others;
}

/* All threads that have not ended wait: moves the time to the end of the first wait. */
static bool let_time_pass(void)
{
    uint32_t next = UINT32_MAX;

    for (uint32_t i = 0; i < THREADS; i++) {
        if (!all.threads[i].ended && all.threads[i].deadline_us < next) {
            next = all.threads[i].deadline_us;
        }
    }
    if (next == UINT32_MAX) {
        return false;
    }
    all.now_us = next;
    all.result.deadlocks++;
    return true;
}

static uint64_t state_now(void)
{
    uint64_t hash = HASH_BASIS;

    for (uint32_t i = 0; i < THREADS; i++) {
        mix(&hash, all.threads[i].state);
        mix(&hash, all.threads[i].ended);
        mix(&hash, all.threads[i].yields);
    }
    for (uint32_t i = 0; i < EXPLORER_DEVICES; i++) {
        const ferrule_device_t *dev = &all.devices[i];

        mix(&hash, dev->locked_by == NULL
                       ? 0u
                       : (uint64_t)((const char *)dev->locked_by - (const char *)all.threads));
        mix(&hash, dev->core.activations);
        mix(&hash, dev->core.users);
        for (const struct ferrule_place *place = dev->core.waiters; place != NULL;
             place = place->next) {
            mix(&hash, (uint64_t)((const char *)place - (const char *)all.threads));
        }
        mix(&hash, dev->core.is_open);
    }
    mix(&hash, all.now_us);
    return hash == 0u ? 1u : hash;
}

/* Returns whether the state is new. */
static bool visit(uint64_t state)
{
    uint64_t at = state % STATES;

    while (all.visited[at] != 0u && all.visited[at] != state) {
        at = (at + 1u) % STATES;
    }
    if (all.visited[at] == state) {
        return false;
    }
    if (++all.result.states > STATES / 2) {
        abort();
    }
    all.visited[at] = state;
    return true;
}

static void enter_thread(int number)
{
    const int32_t status = explorer_run((uint32_t)number, &all.devices[0], &all.devices[1]);

    if (status != FERRULE_OK) {
        all.result.failures++;
        all.result.status = status;
    }
    all.threads[number].ended = true;
    all.threads[number].deadline_us = UINT32_MAX;
    (void)swapcontext(&all.threads[number].context, &all.scheduler);
}

static void begin(void)
{
    all.current = NULL;
    all.now_us = 0;
    for (uint32_t i = 0; i < EXPLORER_DEVICES; i++) {
        memset(&all.devices[i], 0, sizeof all.devices[i]);
        expect(ferrule_device_init(&all.devices[i]) == FERRULE_OK);
        expect(ferrule_device_bind_driver(&all.devices[i], explorer_driver(),
                                          explorer_context(i)) == FERRULE_OK);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        struct thread *thread = &all.threads[i];

        (void)getcontext(&thread->context);
        thread->context.uc_stack.ss_sp = thread->stack;
        thread->context.uc_stack.ss_size = sizeof thread->stack;
        thread->context.uc_link = NULL;
        makecontext(&thread->context, (void (*)(void))enter_thread, 1, (int)i);
        thread->state = 1;
        thread->awaited = NULL;
        thread->deadline_us = UINT32_MAX;
        thread->ended = false;
        thread->yields = false;
    }
}

static uint8_t lowest(uint8_t set)
{
    return (uint8_t)(set & (uint8_t)-set);
}

/* Runs all threads once: first as chosen before, then the first thread that can go on. */
static void run_once(void)
{
    begin();
    all.result.executions++;
    for (uint32_t step = 0;; step++) {
        uint8_t set = able();

        if (set == 0u) {
            if (!let_time_pass()) {
                return; /* all have ended */
            }
            set = able();
        }
        if (step == all.depth) {
            if (step == DEPTH) {
                abort();
            }
            if (!visit(state_now())) {
                return;
            }
            all.chosen[step] = lowest(set);
            all.untried[step] = (uint8_t)(set & ~lowest(set));
            all.depth++;
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            if (all.chosen[step] == 1u << i) {
                all.current = &all.threads[i];
            }
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            all.threads[i].yields = false;
        }
        (void)swapcontext(&all.scheduler, &all.current->context);
        all.current = NULL;
    }
}

struct explorer_result explorer_search(void)
{
    memset(all.visited, 0, sizeof all.visited);
    all.result = (struct explorer_result){0};
    all.depth = 0;
    for (;;) {
        run_once();
        while (all.depth > 0u && all.untried[all.depth - 1u] == 0u) {
            all.depth--;
        }
        if (all.depth == 0u) {
            return all.result;
        }
        all.chosen[all.depth - 1u] = lowest(all.untried[all.depth - 1u]);
        all.untried[all.depth - 1u] &= (uint8_t)~all.chosen[all.depth - 1u];
    }
}
