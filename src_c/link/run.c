/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ferrule/port.h"
#include "message.h"

#define TRIALS       4u
#define FOLLOW_SHIFT 6u /* 64 calls: enough even if one counter step is longer than a call */

struct profile {
    struct ferrule_counter *counter;
    uint32_t *counters;
    uint64_t begin;    /* counter reading at the start of the running operator */
    uint32_t overhead; /* count for an operator without instructions */
    uint32_t running;  /* the operator, or FERRULE_NO_OPERATOR */
    uint32_t count;    /* number of operators */
};

/* Reads the counter first and last, so that its own work is counted for no operator. */
static void record(void *context, uint32_t index)
{
    struct profile *profile = context;
    const uint64_t end = ferrule_counter_read(profile->counter);
    if (profile->running < profile->count) {
        /* two consecutive readings are less than 2^32 apart */
        const uint32_t gross = (uint32_t)(end - profile->begin);
        profile->counters[profile->running] =
            gross > profile->overhead ? gross - profile->overhead : 0u;
    }
    profile->running = index;
    profile->begin = ferrule_counter_read(profile->counter);
}

struct follower {
    struct ferrule_counter *counter;
    uint32_t calls;
};

/* A reading between operators prevents a short hardware counter from wrapping unnoticed. */
static void follow(void *context, uint32_t index)
{
    struct follower *follower = context;
    (void)index;
    follower->calls++;
    (void)ferrule_counter_read(follower->counter); /* the counter accumulates the total */
}

/* The count of 2^FOLLOW_SHIFT calls of `follow`; `reading` is the count of one reading. */
static uint64_t following_overhead(struct ferrule_counter *counter, uint64_t reading)
{
    void (*volatile on_operator)(void *context, uint32_t index) =
        follow; /* called the way executors call it */
    struct follower follower = {.counter = counter};
    const uint64_t first = ferrule_counter_read(counter);
    for (uint32_t call = 0; call < (1u << FOLLOW_SHIFT); call++) {
        on_operator(&follower, call);
    }
    return ferrule_counter_read(counter) - first - reading;
}

/* The minimum difference between two consecutive readings; a coarse counter may step between them.
 */
static uint64_t reading_overhead(struct ferrule_counter *counter)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        const uint64_t first = ferrule_counter_read(counter);
        const uint64_t step = ferrule_counter_read(counter) - first;
        least = step < least ? step : least;
    }
    return least;
}

/* The minimum count recorded for no work, including entry to and return from the callback. */
static uint32_t callback_overhead(struct ferrule_counter *counter)
{
    void (*volatile on_operator)(void *context, uint32_t index) =
        record; /* called the way executors call it */
    uint32_t least = UINT32_MAX;
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        uint32_t step = 0;
        struct profile profile = {
            .counter = counter, .counters = &step, .running = FERRULE_NO_OPERATOR, .count = 1};
        on_operator(&profile, 0);
        on_operator(&profile, 1);
        least = step < least ? step : least;
    }
    return least;
}

/* Records a call; the model's array holds all calls of a run. */
static void trace(void *context, uint32_t index, uint32_t device, uint32_t call, int32_t status)
{
    struct ferrule_link *link = context;
    if (link->result.calls < link->model->call_count) {
        link->model->calls[link->result.calls] = (struct ferrule_link_call){
            .index = index, .device = (uint16_t)device, .call = (uint16_t)call, .status = status};
        link->result.calls++;
    }
}

void ferrule_link_run(struct ferrule_link *link, uint32_t flags)
{
    const struct ferrule_link_model *model = link->model;
    struct ferrule_link_result *result = &link->result;
    uint64_t overhead = reading_overhead(&link->counter);
    struct profile context = {
        .counter = &link->counter,
        .counters = model->counters,
        .overhead = callback_overhead(&link->counter),
        .running = FERRULE_NO_OPERATOR,
        .count = model->operator_count,
    };
    struct follower follower = {.counter = &link->counter};
    uint64_t following = 0;
    struct ferrule_run_info info = {.failed_operator = FERRULE_NO_OPERATOR};
    if ((flags & FERRULE_RUN_PROFILE) != 0u) {
        info.on_operator = record;
        info.context = &context;
    } else if (link->counter.source == FERRULE_COUNTER_SYSTICK) {
        following = following_overhead(&link->counter, overhead);
        info.on_operator = follow;
        info.context = &follower;
    } else {
        /* no callback between the operators */
    }
    result->calls = 0;
    if ((flags & FERRULE_RUN_TRACE) != 0u) {
        info.on_device = trace;
        info.device_context = link;
    }
    if (model->counters != NULL) {
        (void)memset(model->counters, 0, model->operator_count * sizeof(uint32_t));
    }

#if FERRULE_LINK_STATE
    if ((flags & FERRULE_RUN_RESET) != 0u) {
        (void)model->reset(); /* of the model's own memory, so it cannot fail */
    }
#endif
    const uintptr_t from = ferrule_port_stack_pointer();
    ferrule_stack_paint();
    ferrule_counter_reset(&link->counter);
    result->status = model->run(&info);
    const uint64_t total = ferrule_counter_read(&link->counter);
    ferrule_stack_measure(from, &result->stack);
    overhead += (following * follower.calls) >> FOLLOW_SHIFT;
    result->total = total > overhead ? total - overhead : 0u;
    result->failed_operator = info.failed_operator;
    result->valid = true;
}
