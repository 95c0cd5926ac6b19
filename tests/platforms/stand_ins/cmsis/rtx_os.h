/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STAND_IN_RTX_OS_H
#define STAND_IN_RTX_OS_H

#include "cmsis_os2.h"

#define osRtxKernelId "RTX"

typedef struct {
    const char *name;
} osRtxThread_t;

extern struct {
    struct {
        uint32_t tick;
    } kernel;
    struct {
        osRtxThread_t *idle;
    } thread;
} osRtxInfo;

#endif /* STAND_IN_RTX_OS_H */
