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
    FERRULE_ERR_HANDLE = -6,      /* the handle was never initialised, or is a copy of another */
    FERRULE_ERR_STATE = -7,       /* a call out of order, such as opening what is not bound */
    FERRULE_ERR_BUSY = -8,        /* somebody holds it, and the call does not wait */
    FERRULE_ERR_TIMEOUT = -9,     /* the time that the call may take is over */
    FERRULE_ERR_INTERRUPT = -10,  /* not allowed in an interrupt */
    FERRULE_ERR_OWNER = -11,      /* another thread opened the device */
    FERRULE_ERR_DEVICE = -12,     /* the device says that it failed, or says nonsense */
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_STATUS_H */
