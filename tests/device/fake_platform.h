/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A platform whose threads, interrupts and faults are set by a test.
 *
 * Every call of the platform and of the driver is recorded, and `hook` runs before the call takes
 * effect, so that a test can let another thread act at that point. The platform counts violations
 * of its contract by the device API, such as a driver called with the guard taken.
 */
#ifndef FAKE_PLATFORM_H
#define FAKE_PLATFORM_H

#include "ferrule/device.h"
#include "ferrule/platform.h"

struct ferrule_device {
    struct ferrule_device_core core;
    const void *locked_by;
    bool guarded;
    bool notified;
};

enum fake_event {
    FAKE_INIT,
    FAKE_DESTROY,
    FAKE_LOCK,
    FAKE_UNLOCK,
    FAKE_READY,
    FAKE_POWER_ON,
    FAKE_POWER_OFF,
    FAKE_ACTIVATE,
    FAKE_DEACTIVATE,
    FAKE_CHECK,
    FAKE_COPY_TO,
    FAKE_COPY_FROM,
    FAKE_GUARD,
    FAKE_CUT,
    FAKE_WAIT,
    FAKE_SUBMIT,
    FAKE_SUBMIT_COPY_TO,
    FAKE_SUBMIT_COPY_FROM,
    FAKE_LOOK,
    FAKE_FINISH,
    FAKE_ABORT,
    FAKE_YIELD,
    FAKE_STOPPED,
    FAKE_EVENTS,
};

struct fake {
    bool in_interrupt;
    uint32_t thread;              /* the thread that calls now */
    int32_t priorities[8];        /* of the threads */
    int32_t results[FAKE_EVENTS]; /* status that each call returns; a failing call has no effect */
    int32_t lock_refusal;         /* status returned for a lock that another thread holds */
    uint32_t open_timeout_us;     /* of the platform */
    uint32_t lock_timeout_us;     /* of the last call that took the lock */
    uint32_t now_us;              /* the time; each look takes a microsecond */
    bool cannot_cut;              /* what the adapter says of the device that is bound next */
    uint32_t stopped_looks;       /* of the driver whether its device has stopped */
    uint32_t trace[256];          /* enum fake_event, without the guard and these looks */
    uint32_t traced;
    uint32_t violations;
    void (*hook)(uint32_t event);
};

struct fake_context {
    ferrule_device_t *dev; /* the driver's caller must hold this device's lock */
    uint32_t over_us;      /* when the oldest command is over */
    uint32_t poll_us;
    uint8_t memory[128]; /* twice the size that the driver declares, so that mutants can
                          * overrun it */
};

extern struct fake fake;

void fake_reset(void);
const struct ferrule_driver *fake_driver(void);
const struct ferrule_driver *fake_no_driver(void);   /* ferrule_no_driver */
const struct ferrule_driver *fake_bare_driver(void); /* without functions and memory */
/* the first driver, with commands in flight: two at most, 500 us each */
const struct ferrule_driver *fake_beside_driver(void);
size_t fake_device_bytes(void);
int32_t fake_bind(ferrule_device_t *dev, const struct ferrule_driver *driver, void *context);
void fake_set_state(ferrule_device_t *dev, uint32_t state);
void fake_set_activations(ferrule_device_t *dev, uint32_t activations);
uint32_t fake_activations(const ferrule_device_t *dev);
uint32_t fake_users(const ferrule_device_t *dev);
/** The thread that has the device open, or 0. */
uint32_t fake_opener(const ferrule_device_t *dev);

#endif /* FAKE_PLATFORM_H */
