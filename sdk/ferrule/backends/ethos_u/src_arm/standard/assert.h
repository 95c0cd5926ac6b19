/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's header, or the part of it that Arm's driver needs where there is no C library. */
#if (__STDC_HOSTED__ || defined(__ZEPHYR__)) && __has_include_next(<assert.h>)
#include_next <assert.h>
#else
#undef assert
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif
