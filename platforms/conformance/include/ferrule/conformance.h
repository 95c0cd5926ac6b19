/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The conformance program: what a device may rely on, tried on a real kernel.
 *
 * The program is the same for every kernel. A port's author compiles it with the kernel, the
 * adapter, src_c/device and one file that defines the functions below. It prints a line for each
 * check; docs/conformance.md describes them.
 */
#ifndef FERRULE_CONFORMANCE_H
#define FERRULE_CONFORMANCE_H

#include <stdint.h>

#include "ferrule/device.h"

/** The adapter's header, in quotes; it completes ferrule_device_t. */
#ifndef FERRULE_CONFORMANCE_PLATFORM_H
#error "define FERRULE_CONFORMANCE_PLATFORM_H as the adapter's header"
#endif
#include FERRULE_CONFORMANCE_PLATFORM_H

/** Threads that exist at the same time, numbered from 0; the last one is the judge. */
#define CONFORMANCE_THREADS        6u
#define CONFORMANCE_JUDGE          5u
#define CONFORMANCE_JUDGE_PRIORITY 4u

/** What the program calls a thread by: the body gets the thread's number. */
typedef void (*conformance_body)(uint32_t thread);

/* ---- defined by the program, called by the port */

/** @brief Make the calls that are allowed before the kernel runs. The port calls it in that state,
 * if the kernel has one in which main() runs. */
void conformance_before_the_kernel(void);

/** @brief The body of the judge, which the port starts; it does not return. */
void conformance_judge(uint32_t thread);

/** @brief The end of the handler of the timer's interrupt, which the port has acknowledged. */
void conformance_interrupt(void);

/* ---- defined by the port */

/** The kernel's name and version. */
extern const char conformance_kernel[];
/** Ticks in a second. */
extern const uint32_t conformance_tick_hz;

/** @brief Bind a device that needs no power and no driver of the platform. */
int32_t conformance_bind(ferrule_device_t *dev, const struct ferrule_driver *driver, void *context);

/**
 * @brief Start a thread, which ends when its body returns.
 * @param thread    its number; an earlier thread of this number has ended some ticks ago
 * @param priority  from 1, low, to 5, high; threads of equal priority need not share time
 */
void conformance_spawn(uint32_t thread, conformance_body body, uint32_t priority);

/** @brief Let the calling thread sleep for at least this time. */
void conformance_sleep(uint32_t ms);

/** @brief Send a character, and wait until it can be sent. */
void conformance_put(char character);

/** @brief Return the time of a counter that is not the kernel's, in microseconds; it wraps at 2^32.
 * Any context. */
uint32_t conformance_now_us(void);

/** @brief Let the timer interrupt once, this time from now; a later call replaces an earlier one.
 * The kernel may be called at the interrupt's priority. */
void conformance_alarm(uint32_t after_us);

#endif /* FERRULE_CONFORMANCE_H */
