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
    FERRULE_ERR_UNSUPPORTED = -2, /* valid, but this implementation does not support it */
    FERRULE_ERR_MEMORY = -3,      /* not enough memory */
    FERRULE_ERR_FAILED = -4,      /* an operation was started and failed */
    FERRULE_ERR_UNAVAILABLE = -5, /* a required device or service is missing */
    FERRULE_ERR_HANDLE = -6,      /* the handle was never initialised, or is a copy of another */
    FERRULE_ERR_STATE = -7,   /* a call out of order, such as opening a handle that is not bound */
    FERRULE_ERR_BUSY = -8,    /* another user holds it, and the call does not wait */
    FERRULE_ERR_TIMEOUT = -9, /* the time limit of the call has expired */
    FERRULE_ERR_INTERRUPT = -10,   /* not allowed in an interrupt */
    FERRULE_ERR_OWNER = -11,       /* another thread opened the device */
    FERRULE_ERR_DEVICE = -12,      /* the device reported a failure or an invalid response */
    FERRULE_ERR_CANCELLED = -13,   /* the caller cancelled the run */
    FERRULE_ERR_ITERATIONS = -14,  /* a loop of the model has run its limit of iterations */
    FERRULE_ERR_UNSTOPPABLE = -15, /* a driver whose device could not be stopped after an error */
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_STATUS_H */
