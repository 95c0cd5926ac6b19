/* SPDX-License-Identifier: Apache-2.0 */
/** @file The program in the RFC's first form, as a function for tests on the host. */
#ifndef FIRST_HOST_H
#define FIRST_HOST_H

#include <stdint.h>

/** Run the program; `result` gets the bytes that the other platforms send. */
void first_infer(uint8_t result[153]);

#endif /* FIRST_HOST_H */
