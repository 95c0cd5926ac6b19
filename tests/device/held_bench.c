/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that record the calls from held.c; a handle points only to the device's letter. */
#include "ferrule/held.h"
#include "ferrule/platform.h"

enum { CALLS = 32 };

struct held_bench {
    uint32_t count;
    char calls[2 * CALLS]; /* pairs of a call's letter and a device's letter */
    char failing[2];       /* the pair whose call fails */
    int32_t failure;
    char lost;  /* the device that is lost, or 0 */
    bool stops; /* it can be stopped now */
    uint32_t now_us;
    uint32_t wait_us;         /* passes in each call that opens a device */
    uint32_t limit_us;        /* of the platform */
    uint32_t given_us[CALLS]; /* the limit of each call that opens a device */
    uint32_t opened;
    uint32_t free_at_us[3]; /* when another thread gives x, y and z back */
    uint32_t users[3];      /* of x, y and z */
    uint32_t turns;         /* of each */
    char turns_of;          /* only of this device, or 0 */
    int32_t places;         /* that the run keeps in queues */
};

extern struct held_bench held_bench;
struct held_bench held_bench;

static int32_t note(char call, ferrule_device_t *dev)
{
    const char device = *(const char *)(const void *)dev;

    if (held_bench.count < CALLS) {
        held_bench.calls[2 * held_bench.count] = call;
        held_bench.calls[2 * held_bench.count + 1] = device;
    }
    held_bench.count++;
    return held_bench.failing[0] == call && held_bench.failing[1] == device ? held_bench.failure
                                                                            : FERRULE_OK;
}

int32_t ferrule_device_activate(ferrule_device_t *dev)
{
    return note('a', dev);
}

static int32_t wait_for(const ferrule_device_t *dev, uint32_t timeout_us)
{
    const uint32_t free_at_us = held_bench.free_at_us[*(const char *)(const void *)dev - 'x'];

    if (held_bench.now_us >= free_at_us) {
        return FERRULE_OK;
    }
    if (timeout_us == 0u) {
        return FERRULE_ERR_BUSY;
    }
    if (free_at_us - held_bench.now_us <= timeout_us) {
        held_bench.now_us = free_at_us;
        return FERRULE_OK;
    }
    held_bench.now_us += timeout_us;
    return FERRULE_ERR_TIMEOUT;
}

int32_t ferrule_device_open_in_turn(ferrule_device_t *dev, uint32_t timeout_us,
                                    struct ferrule_stop *stop, struct ferrule_place *kept)
{
    int32_t status;

    (void)stop;
    held_bench.given_us[held_bench.opened % CALLS] = timeout_us;
    held_bench.opened++;
    held_bench.now_us += held_bench.wait_us;
    status = note('o', dev);
    status = status != FERRULE_OK ? status : wait_for(dev, timeout_us);
    if (kept != NULL) {
        held_bench.places += status == FERRULE_ERR_TIMEOUT && !kept->waits ? 1 : 0;
        held_bench.places -= status != FERRULE_ERR_TIMEOUT && kept->waits ? 1 : 0;
        kept->waits = status == FERRULE_ERR_TIMEOUT;
    }
    return status;
}

void ferrule_device_leave(ferrule_device_t *dev, struct ferrule_place *kept)
{
    (void)dev;
    held_bench.places -= kept->waits ? 1 : 0;
    kept->waits = false;
}

uint32_t ferrule_device_users(ferrule_device_t *dev, uint32_t *turns)
{
    const char device = *(const char *)(const void *)dev;

    if (held_bench.turns_of == 0 || held_bench.turns_of == device) {
        *turns += held_bench.turns;
    }
    return held_bench.users[device - 'x'];
}

int32_t ferrule_device_close(ferrule_device_t *dev)
{
    return note('c', dev);
}

int32_t ferrule_device_deactivate(ferrule_device_t *dev)
{
    return note('d', dev);
}

int32_t ferrule_device_copy_to(ferrule_device_t *dev, uint32_t device_offset, const void *source,
                               size_t bytes)
{
    (void)device_offset;
    (void)source;
    (void)bytes;
    return note('t', dev);
}

int32_t ferrule_device_copy_from(ferrule_device_t *dev, void *destination, uint32_t device_offset,
                                 size_t bytes)
{
    (void)device_offset;
    (void)destination;
    (void)bytes;
    return note('f', dev);
}

int32_t ferrule_device_submit_copy_to(ferrule_device_t *dev, uint32_t device_offset,
                                      const void *source, size_t bytes)
{
    (void)device_offset;
    (void)source;
    (void)bytes;
    return note('T', dev);
}

int32_t ferrule_device_submit_copy_from(ferrule_device_t *dev, void *destination,
                                        uint32_t device_offset, size_t bytes)
{
    (void)device_offset;
    (void)destination;
    (void)bytes;
    return note('F', dev);
}

int32_t ferrule_device_finish(ferrule_device_t *dev, uint32_t timeout_us)
{
    (void)timeout_us;
    return note('f', dev);
}

int32_t ferrule_device_recover(ferrule_device_t *dev)
{
    if (!ferrule_device_is_lost(dev)) {
        return FERRULE_OK;
    }
    if (!held_bench.stops) {
        return FERRULE_ERR_DEVICE;
    }
    held_bench.lost = 0;
    return FERRULE_OK;
}

bool ferrule_device_is_lost(const ferrule_device_t *dev)
{
    return *(const char *)(const void *)dev == held_bench.lost;
}

void ferrule_stop_set_deadline(struct ferrule_stop *stop, const uint32_t *deadline_us)
{
    stop->has_deadline = deadline_us != NULL;
}

void ferrule_stop_request(struct ferrule_stop *stop)
{
    stop->requested = true;
}

int32_t ferrule_stop_status(const struct ferrule_stop *stop)
{
    return stop != NULL && stop->requested ? FERRULE_ERR_CANCELLED : FERRULE_OK;
}

uint32_t ferrule_platform_now_us(void)
{
    return held_bench.now_us;
}

uint32_t ferrule_platform_open_timeout_us(void)
{
    return held_bench.limit_us;
}
