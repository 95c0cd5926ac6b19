/* SPDX-License-Identifier: Apache-2.0 */
/** @file An accelerator in the style of a CMSIS-Driver, whose calls always succeed. */
#ifndef ACCELERATOR_H
#define ACCELERATOR_H

#include "ferrule/platform/cmsis.h"

extern const struct ferrule_cmsis_accelerator test_accelerator;

#endif /* ACCELERATOR_H */
