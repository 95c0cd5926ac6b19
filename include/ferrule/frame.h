/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Frames on a wire: a four-byte header, a payload and a CRC-32, encoded with COBS and
 * delimited by zero bytes. The link to a host (ferrule/link.h) and drivers of serially attached
 * devices use them.
 */
#ifndef FERRULE_FRAME_H
#define FERRULE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FERRULE_FRAME_HEADER  4u /* version, type, sequence (16 bits) */
#define FERRULE_FRAME_TRAILER 4u /* CRC-32 */

/** The functions that access the wire. */
struct ferrule_link_port {
    int32_t (*read_byte)(void *context); /* a byte, or -1 if none is available; must not wait */
    void (*write_byte)(void *context, uint8_t byte); /* may wait for space */
    void *context;                                   /* first argument of both */
};

/** One end of a wire, owned by the caller. The caller sets `port`, `frame` and `capacity`; the
 * other members are private to frame.c and start at zero. */
struct ferrule_frame_line {
    const struct ferrule_link_port *port;
    uint8_t *frame;          /* header, payload and CRC; shared by both directions */
    uint32_t capacity;       /* bytes of `frame` */
    uint32_t received;       /* bytes of the frame in progress; above the capacity: dropped */
    uint8_t block_left;      /* COBS: bytes before the next code byte */
    bool block_ends_in_zero; /* COBS: the block is followed by an implied zero */
};

/** @brief Return the CRC-32 (as in zlib) of `bytes` bytes. Any context. */
uint32_t ferrule_crc32(const uint8_t *data, uint32_t bytes);

/**
 * @brief Read until `line->frame` holds a complete frame with a correct CRC. The line's thread.
 * @retval true   a frame was received; `*bytes` is its length without the CRC
 * @retval false  no bytes are left to read; the next call continues
 */
bool ferrule_frame_receive(struct ferrule_frame_line *line, uint32_t *bytes);

/** @brief Append the CRC to the first `bytes` bytes of `line->frame` and send the frame. A partly
 * received frame is lost. The line's thread. */
void ferrule_frame_send(struct ferrule_frame_line *line, uint32_t bytes);

/** @brief Read a 16-bit little-endian number from a payload. */
static inline uint16_t ferrule_get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | (uint32_t)at[1] << 8);
}

/** @brief Read a 32-bit little-endian number from a payload. */
static inline uint32_t ferrule_get32(const uint8_t *at)
{
    return (uint32_t)ferrule_get16(at) | (uint32_t)ferrule_get16(at + 2) << 16;
}

/** @brief Write a 16-bit little-endian number, and return the address after it. */
static inline uint8_t *ferrule_put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

/** @brief Write a 32-bit little-endian number, and return the address after it. */
static inline uint8_t *ferrule_put32(uint8_t *at, uint32_t value)
{
    return ferrule_put16(ferrule_put16(at, value), value >> 16);
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_FRAME_H */
