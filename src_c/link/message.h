/* SPDX-License-Identifier: Apache-2.0 */
/** @file The numbers of the protocol that are not public, and little-endian access to a payload. */
#ifndef FERRULE_LINK_MESSAGE_H
#define FERRULE_LINK_MESSAGE_H

#include <stdint.h>

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
    FERRULE_STARTED = 0x45, /* the run that was asked for begins now */
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

static inline uint16_t ferrule_get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | (uint32_t)at[1] << 8);
}

static inline uint32_t ferrule_get32(const uint8_t *at)
{
    return (uint32_t)ferrule_get16(at) | (uint32_t)ferrule_get16(at + 2) << 16;
}

static inline uint8_t *ferrule_put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

static inline uint8_t *ferrule_put32(uint8_t *at, uint32_t value)
{
    return ferrule_put16(ferrule_put16(at, value), value >> 16);
}

#endif /* FERRULE_LINK_MESSAGE_H */
