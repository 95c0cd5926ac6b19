/* SPDX-License-Identifier: Apache-2.0 */
/** @file A driver under test that waits for its device's interrupt. */
#ifndef SLEEPER_H
#define SLEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/device.h"

enum { SLEEPER_START = 0x0, SLEEPER_DONE = 0x4, SLEEPER_VALUE = 0x8 };

struct sleeper {
    uintptr_t base;
    volatile bool over;
    uint32_t looks; /* calls of is_over */
};

extern const struct ferrule_driver sleeper_driver;

int32_t sleeper_run(ferrule_device_t *dev, uint32_t value, uint32_t *result);
void sleeper_isr(struct sleeper *sleeper);

#endif /* SLEEPER_H */
