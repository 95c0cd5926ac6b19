/* SPDX-License-Identifier: Apache-2.0 */
/** @file The program in the RFC's first form, as a function for tests on the host. */
#ifndef FIRST_HOST_H
#define FIRST_HOST_H

#include <stdint.h>

/** The 8 bytes that the other platforms send. */
int8_t *first_result(void);
/** Run the program. */
void first_infer(void);

#endif /* FIRST_HOST_H */
