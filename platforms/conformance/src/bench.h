/* SPDX-License-Identifier: Apache-2.0 */
/** @file The devices and threads of the checks. */
#ifndef CONFORMANCE_BENCH_H
#define CONFORMANCE_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/conformance.h"

enum { BENCH_DEVICES = 2 };

/** What a measured time may exceed its limit by, for the instructions around the wait. */
#define BENCH_SLACK_US 400u

/** A device that works for a time, of which the timer's interrupt is the end. */
struct bench_device {
    ferrule_device_t handle;
    volatile bool is_over;
    volatile bool is_deaf; /* its abort fails */
};

extern struct bench_device bench_devices[BENCH_DEVICES];
extern const struct ferrule_driver bench_driver;

/** Calibrate bench_burn(), and make the devices active. */
void bench_begin(void);

uint32_t bench_tick_us(void);
/** The time since `begin`, a time of conformance_now_us(). */
uint32_t bench_since(uint32_t begin);
/** Keep the core busy for this time, not counting the time of other threads. */
void bench_burn(uint32_t us);

/** Let the device begin to work; only one works at a time. */
void bench_work(struct bench_device *device, uint32_t us);
/** Wait until it is over. */
int32_t bench_wait(struct bench_device *device, uint32_t timeout_us);
/** What the next interrupts do instead of ending the work; NULL: end it. */
void bench_interrupt(void (*action)(void));

/** Start a thread. */
void bench_spawn(uint32_t thread, conformance_body body, uint32_t priority);
/** Wait until a thread has ended; if it does not, the program ends here. */
void bench_join(uint32_t thread);

/** One run of a generated executor on a device that works for this time; `took`, if it is not NULL,
 * is called while the device is held. */
int32_t bench_run(struct bench_device *device, uint32_t work_us, void (*took)(uint32_t thread),
                  uint32_t thread);

/* ---- the checks, in the order in which they are made */

void check_before_the_kernel(void);
void check_order(void);
void check_time(void);
void check_interrupts(void);
void check_cancel(void);
void check_inversion(void);
void check_fairness(void);
void check_deadlock(void);
void check_loss(void);
void check_end(void);

#endif /* CONFORMANCE_BENCH_H */
