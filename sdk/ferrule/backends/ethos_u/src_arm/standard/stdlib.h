/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's header, or the part of it that Arm's driver needs where there is no C library.
 * The driver itself, which alone has seen its ethosu_device.h, gets no memory from the C library:
 * only its weak semaphores ask for some, which src_arm/system.c replaces. A linker would otherwise
 * bring the library's heap for them before it drops them. */
#if __has_include_next(<stdlib.h>)
#include_next <stdlib.h>
#else
#include <stddef.h>
#endif

#ifdef ETHOSU_DEVICE_H
#undef malloc
#undef free
#define malloc(bytes) ((void)(bytes), (void *)0)
#define free(memory)  ((void)(memory))
#endif
