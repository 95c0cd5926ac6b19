/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's header, or the part of it that Arm's driver needs where there is no C library:
 * declarations for functions that the linker drops, because src_arm/system.c replaces them. */
#if __has_include_next(<stdlib.h>)
#include_next <stdlib.h>
#else
#ifndef ETHOS_U_ARM_STDLIB_H
#define ETHOS_U_ARM_STDLIB_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *malloc(size_t bytes);
void free(void *memory);

#ifdef __cplusplus
}
#endif

#endif /* ETHOS_U_ARM_STDLIB_H */
#endif
