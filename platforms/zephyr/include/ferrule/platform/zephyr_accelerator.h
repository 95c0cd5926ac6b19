/* SPDX-License-Identifier: Apache-2.0 */
/** @file The devicetree data of an accelerator with registers (ferrule,mmio-accelerator). */
#ifndef FERRULE_PLATFORM_ZEPHYR_ACCELERATOR_H
#define FERRULE_PLATFORM_ZEPHYR_ACCELERATOR_H

#include <stdbool.h>
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

/** The API of these devices, which identifies them: it has no functions. */
extern const char ferrule_zephyr_accelerator_api;

/** @brief Return whether a device, which may be NULL, is of a node ferrule,mmio-accelerator. Any
 * context.
 */
static inline bool ferrule_zephyr_is_accelerator(const struct device *device)
{
	return device != NULL && device->api == &ferrule_zephyr_accelerator_api;
}

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
