/* SPDX-License-Identifier: Apache-2.0 */
/** @file Zephyr's device, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_DEVICE_H
#define FERRULE_FAKE_ZEPHYR_DEVICE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define __subsystem

struct device {
    const char *name;
    const void *config;
    const void *api;
    void *data;
};

bool device_is_ready(const struct device *dev);

#endif /* FERRULE_FAKE_ZEPHYR_DEVICE_H */
