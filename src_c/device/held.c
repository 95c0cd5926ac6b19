/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/held.h"

#include "ferrule/platform.h"

/* How long a run waits for one member of a pool before it looks at all of them again. */
#define POOL_SLICE_US 5000u

static int32_t tell(const struct ferrule_held *held, uint32_t device, uint32_t call, int32_t status)
{
    const struct ferrule_run_info *info = held->info;

    if (info != NULL && info->on_device != NULL) {
        info->on_device(info->device_context, held->index, device, call, status);
    }
    return status;
}

static void push(struct ferrule_held *held, uint32_t device, uint32_t call)
{
    held->entries[held->count].device = device;
    held->entries[held->count].call = call;
    held->count++;
}

/* Not always the last entry: a device that was activated early stays active while others are opened
 * and closed. */
static void drop(struct ferrule_held *held, uint32_t device, uint32_t call)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < held->count; i++) {
        if (held->entries[i].device != device || held->entries[i].call != call) {
            held->entries[kept] = held->entries[i];
            kept++;
        }
    }
    held->count = kept;
}

int32_t ferrule_held_begin(struct ferrule_held *held, const uint32_t *deadline_us)
{
    int32_t result = FERRULE_OK;

    held->stop = held->info != NULL ? &held->info->stop : &held->own;
    ferrule_stop_set_deadline(held->stop, deadline_us); /* a request before belongs to this run */
    for (uint32_t device = 0; device < held->capacity / FERRULE_HELD_PER_DEVICE; device++) {
        const bool was_lost = ferrule_device_is_lost(held->handles[device]);
        const int32_t status = ferrule_device_recover(held->handles[device]);

        if (status != FERRULE_OK) {
            return status;
        }
        if (was_lost) {
            result = FERRULE_ERR_DEVICE; /* until now it may have written over the inputs */
        }
    }
    return result;
}

void ferrule_run_cancel(struct ferrule_run_info *info)
{
    ferrule_stop_request(&info->stop);
}

int32_t ferrule_held_next(struct ferrule_held *held, uint32_t index)
{
    const struct ferrule_run_info *info = held->info;
    int32_t status = FERRULE_OK;

    held->index = index;
    ferrule_run_notify(info, index);
    if (info != NULL && info->stop_at != NULL) {
        status = info->stop_at(info->context, index);
    }
    return status != FERRULE_OK ? status : ferrule_stop_status(held->stop);
}

int32_t ferrule_held_activate(struct ferrule_held *held, uint32_t device)
{
    int32_t status = FERRULE_ERR_MEMORY;

    if (held->count < held->capacity) {
        status = ferrule_device_activate(held->handles[device]);
        if (status == FERRULE_OK) {
            push(held, device, FERRULE_CALL_DEACTIVATE);
        }
    }
    return tell(held, device, FERRULE_CALL_ACTIVATE, status);
}

/* Opens a device without a report; `kept` may be NULL. */
static int32_t open_in_turn(struct ferrule_held *held, uint32_t device, uint32_t timeout_us,
                            struct ferrule_place *kept)
{
    int32_t status = FERRULE_ERR_MEMORY;

    if (held->count < held->capacity) {
        status = ferrule_device_open_in_turn(held->handles[device], timeout_us, held->stop, kept);
        if (status == FERRULE_OK) {
            push(held, device, FERRULE_CALL_CLOSE);
        }
    }
    return status;
}

static int32_t open_quietly(struct ferrule_held *held, uint32_t device, uint32_t timeout_us)
{
    return open_in_turn(held, device, timeout_us, NULL);
}

int32_t ferrule_held_open(struct ferrule_held *held, uint32_t device)
{
    return tell(held, device, FERRULE_CALL_OPEN, open_quietly(held, device, FERRULE_WAIT_DEFAULT));
}

/* The limit of the wait for all devices of a set. */
struct limit {
    uint32_t begin;
    uint32_t whole;
};

static struct limit limit_of_a_set(void)
{
    const struct limit limit = {ferrule_platform_now_us(), ferrule_platform_open_timeout_us()};

    return limit;
}

static uint32_t rest_of(const struct limit *limit)
{
    const uint32_t passed = ferrule_platform_now_us() - limit->begin;

    return passed < limit->whole ? limit->whole - passed : 0u;
}

static uintptr_t address_of(const struct ferrule_held *held, uint32_t device)
{
    return (uintptr_t)held->handles[device];
}

/* The device with the lowest address above `last`; the addresses differ. */
static uint32_t next_of(const struct ferrule_held *held, const uint32_t *devices, uint32_t count,
                        uintptr_t last)
{
    uintptr_t lowest = UINTPTR_MAX;
    uint32_t found = devices[0];

    for (uint32_t i = 0; i < count; i++) {
        const uintptr_t address = address_of(held, devices[i]);

        if (address > last && address <= lowest) {
            lowest = address;
            found = devices[i];
        }
    }
    return found;
}

/* Opens devices in order of address, without a report; `*device` is the last one that was tried. */
static int32_t open_in_order(struct ferrule_held *held, const uint32_t *devices, uint32_t count,
                             const struct limit *limit, uint32_t *device)
{
    int32_t status = FERRULE_OK;
    uintptr_t last = 0;

    for (uint32_t i = 0; i < count && status == FERRULE_OK; i++) {
        const uint32_t rest = rest_of(limit);

        *device = next_of(held, devices, count, last);
        last = address_of(held, *device);
        status = open_quietly(held, *device, rest);
        if (status == FERRULE_ERR_BUSY && rest == 0u && limit->whole > 0u) {
            status = FERRULE_ERR_TIMEOUT; /* the devices before have used up the time */
        }
    }
    return status;
}

/* Reports the devices that were opened since there were `kept` entries. */
static void tell_opened(const struct ferrule_held *held, uint32_t kept)
{
    for (uint32_t i = kept; i < held->count; i++) {
        (void)tell(held, held->entries[i].device, FERRULE_CALL_OPEN, FERRULE_OK);
    }
}

int32_t ferrule_held_open_set(struct ferrule_held *held, const uint32_t *devices, uint32_t count)
{
    const struct limit limit = limit_of_a_set();
    const uint32_t kept = held->count;
    uint32_t device = devices[0];
    const int32_t status = open_in_order(held, devices, count, &limit, &device);

    tell_opened(held, kept);
    if (status != FERRULE_OK) {
        (void)tell(held, device, FERRULE_CALL_OPEN, status);
        while (held->count > kept) { /* the first error is returned */
            (void)ferrule_held_close(held, held->entries[held->count - 1u].device);
        }
    }
    return status;
}

/* Closes the devices that were opened since there were `kept` entries, without a report. */
static void give_back(struct ferrule_held *held, uint32_t kept)
{
    while (held->count > kept) {
        held->count--;
        (void)ferrule_device_close(held->handles[held->entries[held->count].device]);
    }
}

/* Opens the first free member of a pool, without waiting; `*device` is the last one that was tried.
 */
static int32_t open_free(struct ferrule_held *held, const struct ferrule_held_pool *pool,
                         uint32_t *device)
{
    int32_t status = FERRULE_ERR_BUSY;

    for (uint32_t i = 0; i < pool->count && status == FERRULE_ERR_BUSY; i++) {
        *device = pool->first + i;
        status = open_quietly(held, *device, 0u);
    }
    if (status == FERRULE_OK) {
        *pool->chosen = *device;
    }
    return status;
}

/* The member of a full pool with the fewest users; of several, another one at each turn. */
static uint32_t shortest_queue(const struct ferrule_held *held,
                               const struct ferrule_held_pool *pool)
{
    uint32_t turns = 0;
    uint32_t unused = 0;
    uint32_t least = UINT32_MAX;
    uint32_t found = pool->first;

    for (uint32_t i = 0; i < pool->count; i++) {
        (void)ferrule_device_users(held->handles[pool->first + i], &turns);
    }
    for (uint32_t i = 0; i < pool->count; i++) {
        const uint32_t device = pool->first + (turns + i) % pool->count;
        const uint32_t users = ferrule_device_users(held->handles[device], &unused);

        if (users < least) {
            least = users;
            found = device;
        }
    }
    return found;
}

/* Waits for a member for a while, and looks at the others if it is not free then. */
static int32_t wait_in_queue(struct ferrule_held *held, const struct ferrule_held_pool *pool,
                             uint32_t rest, struct ferrule_place *place, uint32_t *device)
{
    const uint32_t slice = rest < POOL_SLICE_US ? rest : POOL_SLICE_US;
    int32_t status = open_in_turn(held, *device, slice, place);

    if (status == FERRULE_OK) {
        *pool->chosen = *device;
    }
    if (status != FERRULE_ERR_TIMEOUT) {
        return status;
    }
    status = ferrule_stop_status(held->stop);
    return status != FERRULE_OK ? status : open_free(held, pool, device);
}

/* Opens a member of a full pool. The run holds no device. */
static int32_t wait_for_member(struct ferrule_held *held, const struct ferrule_held_pool *pool,
                               const struct limit *limit, uint32_t *device)
{
    const uint32_t awaited = shortest_queue(held, pool);
    struct ferrule_place place = {0};
    int32_t status = FERRULE_ERR_TIMEOUT;
    uint32_t rest = rest_of(limit);

    while (rest > 0u) {
        *device = awaited;
        status = wait_in_queue(held, pool, rest, &place, device);
        rest = 0u;
        if (status == FERRULE_ERR_BUSY && place.waits) { /* not of a platform that cannot wait */
            status = FERRULE_ERR_TIMEOUT;
            rest = rest_of(limit);
        }
    }
    ferrule_device_leave(held->handles[awaited], &place);
    return status;
}

/* One attempt, without the pool of which the run has a member already, or NULL; `*full` is a pool
 * without a free member, or NULL. */
static int32_t open_all(struct ferrule_held *held, const struct ferrule_held_pool *pools,
                        uint32_t count, const struct ferrule_held_pool *mine,
                        const struct ferrule_held_pool **full, uint32_t *device)
{
    int32_t status = FERRULE_OK;

    *full = NULL;
    for (uint32_t i = 0; i < count && status == FERRULE_OK; i++) {
        if (&pools[i] != mine) {
            status = open_free(held, &pools[i], device);
        }
        if (status == FERRULE_ERR_BUSY) {
            *full = &pools[i];
        }
    }
    return status;
}

/* A run that has waited for a member keeps it while it opens the devices: who has one of these
 * never waits for a pool. */
int32_t ferrule_held_open_pools(struct ferrule_held *held, const uint32_t *devices, uint32_t count,
                                const struct ferrule_held_pool *pools, uint32_t pool_count)
{
    const struct limit limit = limit_of_a_set();
    const uint32_t kept = held->count;
    const struct ferrule_held_pool *full = NULL;
    uint32_t device = 0;
    int32_t status;

    do {
        const struct ferrule_held_pool *mine = full;

        full = NULL;
        status = open_in_order(held, devices, count, &limit, &device);
        if (status == FERRULE_OK) {
            status = open_all(held, pools, pool_count, mine, &full, &device);
        }
        if (status != FERRULE_OK) {
            give_back(held, kept);
        }
        if (full != NULL && limit.whole > 0u) {
            status = wait_for_member(held, full, &limit, &device);
        }
    } while (full != NULL && status == FERRULE_OK);
    if (status != FERRULE_OK) {
        return tell(held, device, FERRULE_CALL_OPEN, status);
    }
    tell_opened(held, kept);
    return FERRULE_OK;
}

int32_t ferrule_held_close(struct ferrule_held *held, uint32_t device)
{
    drop(held, device, FERRULE_CALL_CLOSE);
    return tell(held, device, FERRULE_CALL_CLOSE, ferrule_device_close(held->handles[device]));
}

int32_t ferrule_held_deactivate(struct ferrule_held *held, uint32_t device)
{
    drop(held, device, FERRULE_CALL_DEACTIVATE);
    return tell(held, device, FERRULE_CALL_DEACTIVATE,
                ferrule_device_deactivate(held->handles[device]));
}

int32_t ferrule_held_copy_to(struct ferrule_held *held, uint32_t device, uint32_t device_offset,
                             const void *source, size_t bytes)
{
    return tell(held, device, FERRULE_CALL_COPY_TO,
                ferrule_device_copy_to(held->handles[device], device_offset, source, bytes));
}

int32_t ferrule_held_copy_from(struct ferrule_held *held, uint32_t device, void *destination,
                               uint32_t device_offset, size_t bytes)
{
    return tell(held, device, FERRULE_CALL_COPY_FROM,
                ferrule_device_copy_from(held->handles[device], destination, device_offset, bytes));
}

int32_t ferrule_held_submit_copy_to(struct ferrule_held *held, uint32_t device,
                                    uint32_t device_offset, const void *source, size_t bytes)
{
    return tell(held, device, FERRULE_CALL_COPY_TO,
                ferrule_device_submit_copy_to(held->handles[device], device_offset, source, bytes));
}

int32_t ferrule_held_submit_copy_from(struct ferrule_held *held, uint32_t device, void *destination,
                                      uint32_t device_offset, size_t bytes)
{
    return tell(
        held, device, FERRULE_CALL_COPY_FROM,
        ferrule_device_submit_copy_from(held->handles[device], destination, device_offset, bytes));
}

int32_t ferrule_held_finish(struct ferrule_held *held, uint32_t device, uint32_t index,
                            uint32_t timeout_us)
{
    const uint32_t present = held->index;
    int32_t status;

    held->index = index;
    status = tell(held, device, FERRULE_CALL_FINISH,
                  ferrule_device_finish(held->handles[device], timeout_us));
    if (status == FERRULE_OK) {
        held->index = present;
    }
    return status;
}

int32_t ferrule_held_ran(const struct ferrule_held *held, uint32_t device, int32_t status)
{
    return tell(held, device, FERRULE_CALL_RUN, status);
}

int32_t ferrule_held_end(struct ferrule_held *held, int32_t status)
{
    int32_t first = status;

    if (held->info != NULL) {
        held->info->stop.requested = false; /* it was for this run */
    }
    for (uint32_t left = held->count; left > 0; left--) {
        const struct ferrule_held_entry *last = &held->entries[left - 1];
        const int32_t given = last->call == (uint32_t)FERRULE_CALL_CLOSE
                                  ? ferrule_held_close(held, last->device)
                                  : ferrule_held_deactivate(held, last->device);
        first = first != FERRULE_OK ? first : given;
    }
    return first == FERRULE_OK ? FERRULE_OK : ferrule_run_fail(held->info, held->index, first);
}
