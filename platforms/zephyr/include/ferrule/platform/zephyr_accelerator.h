/* SPDX-License-Identifier: Apache-2.0 */
/** @file The devicetree data of an accelerator with registers (ferrule,mmio-accelerator). */
#ifndef FERRULE_PLATFORM_ZEPHYR_ACCELERATOR_H
#define FERRULE_PLATFORM_ZEPHYR_ACCELERATOR_H

#include <stdint.h>
#include <zephyr/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The reg property of the node. */
struct ferrule_zephyr_accelerator_config {
    uintptr_t base;
    uint32_t bytes;
};

/** @brief Return the base address of the registers, for a driver's context. Any context. */
static inline uintptr_t ferrule_zephyr_accelerator_base(const struct device *device)
{
    const struct ferrule_zephyr_accelerator_config *config =
        (const struct ferrule_zephyr_accelerator_config *)device->config;
    return config->base;
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_ACCELERATOR_H */
