/* SPDX-License-Identifier: Apache-2.0 */
/** @file Conversion between Ferrule's status codes and Zephyr's error numbers. */
#ifndef FERRULE_PLATFORM_ZEPHYR_STATUS_H
#define FERRULE_PLATFORM_ZEPHYR_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @brief Convert a negative errno of Zephyr to a status; docs/platforms.md has the table. */
int32_t ferrule_zephyr_status(int error);

/** @brief Convert a status to a negative errno of Zephyr. */
int ferrule_zephyr_errno(int32_t status);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_STATUS_H */
