/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/frame.h"

#include <stdbool.h>
#include <stdint.h>

#define LONGEST_BLOCK 254u /* bytes without a zero that one COBS code can announce */

static bool is_whole(const struct ferrule_frame_line *line)
{
    const uint32_t bytes = line->received;
    if (line->block_left != 0u || bytes < FERRULE_FRAME_HEADER + FERRULE_FRAME_TRAILER ||
        bytes > line->capacity) {
        return false;
    }
    const uint32_t crc = ferrule_get32(line->frame + bytes - FERRULE_FRAME_TRAILER);
    return ferrule_crc32(line->frame, bytes - FERRULE_FRAME_TRAILER) == crc;
}

/* Reads bytes up to a delimiter, and returns 0, or -1 if no byte is left. The state is kept in
 * locals because this loop dominates the cost of a transfer. */
static int32_t decode(struct ferrule_frame_line *line)
{
    const struct ferrule_link_port port = *line->port;
    const uint32_t capacity = line->capacity;
    uint8_t *const frame = line->frame;
    uint32_t received = line->received;
    uint32_t block_left = line->block_left;
    bool block_ends_in_zero = line->block_ends_in_zero;
    int32_t byte;
    while ((byte = port.read_byte(port.context)) > 0) {
        uint8_t decoded = (uint8_t)byte;
        if (block_left != 0u) {
            block_left--;
        } else {
            const bool zero = block_ends_in_zero;
            block_left = (uint32_t)byte - 1u;
            block_ends_in_zero = block_left != LONGEST_BLOCK;
            if (!zero) {
                continue;
            }
            decoded = 0u;
        }
        if (received < capacity) {
            frame[received++] = decoded;
        } else {
            received = capacity + 1u; /* too long: dropped whatever its CRC */
        }
    }
    line->received = received;
    line->block_left = (uint8_t)block_left;
    line->block_ends_in_zero = block_ends_in_zero;
    return byte;
}

bool ferrule_frame_receive(struct ferrule_frame_line *line, uint32_t *bytes)
{
    while (decode(line) == 0) {
        const bool whole = is_whole(line);
        *bytes = line->received - FERRULE_FRAME_TRAILER;
        line->received = 0;
        line->block_left = 0;
        line->block_ends_in_zero = false;
        if (whole) {
            return true;
        }
    }
    return false;
}

void ferrule_frame_send(struct ferrule_frame_line *line, uint32_t bytes)
{
    const struct ferrule_link_port *port = line->port;
    uint8_t *const frame = line->frame;
    const uint32_t crc = ferrule_crc32(frame, bytes);
    const uint32_t end = bytes + FERRULE_FRAME_TRAILER;
    for (uint32_t i = 0; i < FERRULE_FRAME_TRAILER; i++) {
        frame[bytes + i] = (uint8_t)(crc >> (8u * i));
    }

    port->write_byte(port->context, 0u); /* terminates any noise before the frame */
    for (uint32_t begin = 0;;) {
        uint32_t block = 0;
        while (block < LONGEST_BLOCK && begin + block < end && frame[begin + block] != 0u) {
            block++;
        }
        port->write_byte(port->context, (uint8_t)(block + 1u));
        for (uint32_t i = 0; i < block; i++) {
            port->write_byte(port->context, frame[begin + i]);
        }
        begin += block;
        if (begin == end) {
            break;
        }
        if (block < LONGEST_BLOCK) {
            begin++; /* the code implies this zero */
        }
    }
    port->write_byte(port->context, 0u);
}
