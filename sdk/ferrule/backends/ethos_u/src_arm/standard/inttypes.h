/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's header, or the part of it that Arm's driver needs where there is no C library. A
 * compiler's own inttypes.h includes that of the library, whose presence stdio.h shows. */
#if __has_include_next(<inttypes.h>) && __has_include_next(<stdio.h>)
#include_next <inttypes.h>
#else
#ifndef ETHOS_U_ARM_INTTYPES_H
#define ETHOS_U_ARM_INTTYPES_H

#include <stdint.h>

#define PRIu32 "u"
#define PRIx32 "x"
#define PRIx64 "llx"

#endif /* ETHOS_U_ARM_INTTYPES_H */
#endif
