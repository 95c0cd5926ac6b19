/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A platform that explores all interleavings of threads at the calls of the platform.
 *
 * The threads are coroutines, so every order is repeatable. Time passes only when all threads wait,
 * which is a deadlock that a time-out ends.
 */
#ifndef EXPLORER_H
#define EXPLORER_H

#include <stdint.h>

#include "ferrule/device.h"

enum { EXPLORER_THREADS = 2, EXPLORER_DEVICES = 2 };

struct explorer_result {
    uint32_t executions;
    uint32_t states;
    uint32_t deadlocks;  /* times at which all threads waited */
    uint32_t failures;   /* threads that returned an error, in all executions */
    uint32_t violations; /* of the platform's contract */
    int32_t status;      /* the last of these errors */
};

/** @brief Run all interleavings of explorer_run() in the threads. */
struct explorer_result explorer_search(void);

/* ---- defined by the test */

/** @brief The program of a thread; the devices are bound to explorer_driver(). */
int32_t explorer_run(uint32_t thread, ferrule_device_t *first, ferrule_device_t *second);
const struct ferrule_driver *explorer_driver(void);
/** @brief Return the context of a device, as it is before the program. */
void *explorer_context(uint32_t device);

#endif /* EXPLORER_H */
