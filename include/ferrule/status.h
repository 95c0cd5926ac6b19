/* SPDX-License-Identifier: Apache-2.0 */
/** @file Status codes: zero is success, errors are negative. */
#ifndef FERRULE_STATUS_H
#define FERRULE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum ferrule_status {
    FERRULE_OK = 0,
    FERRULE_ERR_ARGUMENT = -1,    /* a null pointer or a value out of range */
    FERRULE_ERR_UNSUPPORTED = -2, /* well-formed, but this implementation does not do it */
    FERRULE_ERR_MEMORY = -3,      /* there is not enough memory */
    FERRULE_ERR_FAILED = -4,      /* something that was started went wrong */
    FERRULE_ERR_UNAVAILABLE = -5, /* a device or a service that is needed is not there */
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_STATUS_H */
