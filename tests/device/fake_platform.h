/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A platform whose threads, interrupts and faults are what a test says.
 *
 * Every call of the platform and of the driver is written down, and `hook` runs before it does
 * anything: there a test lets another thread do something. The platform counts what the device API
 * must never do, such as calling a driver with the guard taken.
 */
#ifndef FAKE_PLATFORM_H
#define FAKE_PLATFORM_H

#include "ferrule/device.h"
#include "ferrule/platform.h"

struct ferrule_device {
    struct ferrule_device_core core;
    const void *locked_by;
    bool guarded;
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
    FAKE_EVENTS,
};

struct fake {
    bool in_interrupt;
    uint32_t thread;              /* who calls now */
    int32_t results[FAKE_EVENTS]; /* what each call returns; what fails has no effect */
    int32_t lock_refusal;         /* what a lock that another thread has returns */
    uint32_t trace[256];          /* enum fake_event, without the guard */
    uint32_t traced;
    uint32_t violations;
    void (*hook)(uint32_t event);
};

struct fake_context {
    ferrule_device_t *dev; /* whose lock the driver's caller must have */
    uint8_t memory[128];   /* twice what the driver says it has, for mutants to overrun */
};

extern struct fake fake;

void fake_reset(void);
const struct ferrule_driver *fake_driver(void);
const struct ferrule_driver *fake_bare_driver(void); /* no function, no memory */
size_t fake_device_bytes(void);
int32_t fake_bind(ferrule_device_t *dev, const struct ferrule_driver *driver, void *context);
void fake_set_state(ferrule_device_t *dev, uint32_t state);
void fake_set_activations(ferrule_device_t *dev, uint32_t activations);
uint32_t fake_activations(const ferrule_device_t *dev);
uint32_t fake_users(const ferrule_device_t *dev);
/** The thread that has it open, or 0. */
uint32_t fake_opener(const ferrule_device_t *dev);

#endif /* FAKE_PLATFORM_H */
