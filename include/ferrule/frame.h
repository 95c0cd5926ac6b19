/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Frames on a wire: COBS between zero bytes, a header of four bytes, a payload, and a CRC-32
 * at the end. The link to a host (ferrule/link.h) and drivers of devices behind a wire use them.
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

/** How frames reach the wire. */
struct ferrule_link_port {
    int32_t (*read_byte)(void *context); /* a byte, or -1 when there is none; must not wait */
    void (*write_byte)(void *context, uint8_t byte); /* may wait until the byte fits */
    void *context;                                   /* first argument of both */
};

/** One end of a wire. The caller owns it and sets the first members, the others begin as zeros and
 * are frame.c's. */
struct ferrule_frame_line {
    const struct ferrule_link_port *port;
    uint8_t *frame;     /* header, payload and CRC; the same for both directions */
    uint32_t capacity;  /* bytes of `frame` */
    uint32_t received;  /* bytes of the frame so far; more than the capacity: too long, dropped */
    uint8_t block_left; /* COBS: bytes until the next code */
    bool block_ends_in_zero; /* COBS: the block stands for a zero after its bytes */
};

/** @brief CRC-32 as in zlib, of `bytes` bytes. Any context. */
uint32_t ferrule_crc32(const uint8_t *data, uint32_t bytes);

/**
 * @brief Read until a whole frame with a right CRC stands in `line->frame`. The line's thread.
 * @retval true   there is one; its length without CRC is in `*bytes`
 * @retval false  nothing is left to read; the next call goes on
 */
bool ferrule_frame_receive(struct ferrule_frame_line *line, uint32_t *bytes);

/** @brief Add the CRC to the first `bytes` bytes of `line->frame`, and send them. What was received
 * of another frame is lost. The line's thread. */
void ferrule_frame_send(struct ferrule_frame_line *line, uint32_t bytes);

/** @brief A number of 16 bits in a payload, little-endian. */
static inline uint16_t ferrule_get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | (uint32_t)at[1] << 8);
}

/** @brief A number of 32 bits in a payload, little-endian. */
static inline uint32_t ferrule_get32(const uint8_t *at)
{
    return (uint32_t)ferrule_get16(at) | (uint32_t)ferrule_get16(at + 2) << 16;
}

/** @brief Write a number of 16 bits, and return where the next goes. */
static inline uint8_t *ferrule_put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

/** @brief Write a number of 32 bits, and return where the next goes. */
static inline uint8_t *ferrule_put32(uint8_t *at, uint32_t value)
{
    return ferrule_put16(ferrule_put16(at, value), value >> 16);
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_FRAME_H */
