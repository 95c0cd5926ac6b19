/* SPDX-License-Identifier: Apache-2.0 */
/** @file Status codes: zero is success, errors are negative. */
#ifndef FERRULE_STATUS_H
#define FERRULE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum ferrule_status {
    FERRULE_OK = 0,
    FERRULE_ERR_ARGUMENT = -1, /* a null pointer or a value out of range */
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_STATUS_H */
