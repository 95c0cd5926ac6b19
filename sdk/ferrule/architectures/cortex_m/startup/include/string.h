/* SPDX-License-Identifier: Apache-2.0 */
/** @file The part of <string.h> that the start-up code provides, for toolchains without a C
 * library. */
#ifndef FERRULE_STARTUP_STRING_H
#define FERRULE_STARTUP_STRING_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#define FERRULE_RESTRICT
#else
#define FERRULE_RESTRICT restrict
#endif

void *memcpy(void *FERRULE_RESTRICT to, const void *FERRULE_RESTRICT from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);

#undef FERRULE_RESTRICT

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_STARTUP_STRING_H */
