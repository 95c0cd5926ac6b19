/* SPDX-License-Identifier: Apache-2.0 */
/** @file Private constants of the protocol. */
#ifndef FERRULE_LINK_MESSAGE_H
#define FERRULE_LINK_MESSAGE_H

/** Requests; a response has FERRULE_RESPONSE set as well. */
enum ferrule_message {
    FERRULE_HELLO = 0x01,
    FERRULE_MODEL_INFO = 0x02,
    FERRULE_TENSOR_INFO = 0x03,
    FERRULE_WRITE_INPUT = 0x04,
    FERRULE_RUN = 0x05,
    FERRULE_READ_COUNTERS = 0x06,
    FERRULE_READ_OUTPUT = 0x07,
    FERRULE_STACK = 0x08,
    FERRULE_DEVICE_TRACE = 0x09,
    FERRULE_BUILD_INFO = 0x0A,
    FERRULE_CHOOSE_MODEL = 0x0B, /* only a firmware with several models knows it */
    FERRULE_SELF_TEST = 0x0C,    /* only a firmware with a self-test knows it */
    FERRULE_STATISTICS = 0x0D,   /* only a firmware whose devices have counts knows it */
    FERRULE_STARTED = 0x45,      /* the requested run starts now */
    FERRULE_RESPONSE = 0x80,
    FERRULE_ERROR = 0xFF,
};

/** Codes in an error frame. */
enum ferrule_link_error {
    FERRULE_LINK_ERROR_VERSION = 1,
    FERRULE_LINK_ERROR_TYPE = 2,
    FERRULE_LINK_ERROR_LENGTH = 3,
    FERRULE_LINK_ERROR_INDEX = 4,
    FERRULE_LINK_ERROR_RANGE = 5,
    FERRULE_LINK_ERROR_FLAGS = 6,
    FERRULE_LINK_ERROR_STATE = 7,
};

#define FERRULE_RUN_PROFILE 0x01u
#define FERRULE_RUN_TRACE   0x02u
#define FERRULE_RUN_RESET   0x04u /* only a firmware with a model with state knows it */

#endif /* FERRULE_LINK_MESSAGE_H */
