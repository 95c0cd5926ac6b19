/* SPDX-License-Identifier: Apache-2.0 */
/** @file Ferrule's status codes and Zephyr's error numbers. */
#ifndef FERRULE_PLATFORM_ZEPHYR_STATUS_H
#define FERRULE_PLATFORM_ZEPHYR_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @brief What a negative errno of Zephyr is in Ferrule; docs/platforms.md has the table. */
int32_t ferrule_zephyr_status(int error);

/** @brief What a status of Ferrule is as Zephyr's negative errno. */
int ferrule_zephyr_errno(int32_t status);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_STATUS_H */
