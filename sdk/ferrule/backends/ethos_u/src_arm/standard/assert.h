/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's header, or the part of it that Arm's driver needs where there is no C library. In
 * the driver itself, which alone has seen its ethosu_device.h, a failed assertion is a fault of the
 * core, as anywhere in a firmware; the C library's would print a message and bring its heap. */
#if __has_include_next(<assert.h>)
#include_next <assert.h>
#endif

#if defined(ETHOSU_DEVICE_H) || !defined(assert)
#undef assert
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif
