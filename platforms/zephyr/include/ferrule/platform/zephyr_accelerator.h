/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The class of Zephyr devices that are accelerators with registers, `ferrule_accelerator`.
 *
 * The module has a Zephyr driver of this class for nodes `ferrule,mmio-accelerator`. A Zephyr
 * driver of yours, for an accelerator with clocks, resets or pins, belongs to the class if it
 * defines its API with FERRULE_ACCELERATOR_API().
 */
#ifndef FERRULE_PLATFORM_ZEPHYR_ACCELERATOR_H
#define FERRULE_PLATFORM_ZEPHYR_ACCELERATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <zephyr/device.h>
#include <zephyr/sys/iterable_sections.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The functions of a Zephyr driver of this class. */
__subsystem struct ferrule_accelerator_driver_api {
	/** @brief Return the base address of the registers. Any context. */
	uintptr_t (*base)(const struct device *device);
};

/**
 * Define the API of a Zephyr driver of this class:
 * `static FERRULE_ACCELERATOR_API(acme_api) = {.base = acme_base};`
 */
#if defined(DEVICE_API)
#define FERRULE_ACCELERATOR_API(name) DEVICE_API(ferrule_accelerator, name)
#else /* releases that have no classes: the module's linker script has the class's section */
#define FERRULE_ACCELERATOR_API(name)                                                              \
	const STRUCT_SECTION_ITERABLE(ferrule_accelerator_driver_api, name)
#endif

/** @brief Return whether a device, which may be NULL, belongs to this class. Any context. */
static inline bool ferrule_zephyr_is_accelerator(const struct device *device)
{
#if defined(DEVICE_API)
	return device != NULL && DEVICE_API_IS(ferrule_accelerator, device);
#else
	STRUCT_SECTION_START_EXTERN(ferrule_accelerator_driver_api);
	STRUCT_SECTION_END_EXTERN(ferrule_accelerator_driver_api);

	return device != NULL &&
	       (uintptr_t)device->api >=
		       (uintptr_t)STRUCT_SECTION_START(ferrule_accelerator_driver_api) &&
	       (uintptr_t)device->api <
		       (uintptr_t)STRUCT_SECTION_END(ferrule_accelerator_driver_api);
#endif
}

/** @brief Return the base address of the registers of a device of this class. Any context. */
static inline uintptr_t ferrule_zephyr_accelerator_base(const struct device *device)
{
	const struct ferrule_accelerator_driver_api *api =
		(const struct ferrule_accelerator_driver_api *)device->api;

	return api->base(device);
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_ACCELERATOR_H */
