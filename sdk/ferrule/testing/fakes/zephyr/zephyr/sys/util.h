/* SPDX-License-Identifier: Apache-2.0 */
/** @file Zephyr's small macros, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_SYS_UTIL_H
#define FERRULE_FAKE_ZEPHYR_SYS_UTIL_H

#include <stddef.h>

#define ARG_UNUSED(x)                   (void)(x)
#define ARRAY_SIZE(array)               (sizeof(array) / sizeof((array)[0]))
#define BIT(n)                          (1UL << (n))
#define BIT64(n)                        (1ULL << (n))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define MAX(a, b)                       ((a) > (b) ? (a) : (b))
#define UTIL_CAT_(a, b)                 a##b
#define UTIL_CAT(a, b)                  UTIL_CAT_(a, b)

#endif /* FERRULE_FAKE_ZEPHYR_SYS_UTIL_H */
