/* SPDX-License-Identifier: Apache-2.0 */
/** @file The lines that the program prints. Only the judge calls these functions. */
#ifndef CONFORMANCE_REPORT_H
#define CONFORMANCE_REPORT_H

#include <stdint.h>

void report_begin(void);
/** The first part of the names of the checks that follow. */
void report_group(const char *name);
/** A check of a status of ferrule/status.h. */
void report_status(const char *name, int32_t found, int32_t expected);
/** A check of a number, ends included. */
void report_number(const char *name, uint32_t found, uint32_t low, uint32_t high);
/** A number that is not judged. */
void report_note(const char *name, uint32_t found);
/** The last line. */
void report_end(void);

#endif /* CONFORMANCE_REPORT_H */
