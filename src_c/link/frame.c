/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include <stdbool.h>
#include <stdint.h>

#define LONGEST_BLOCK 254u /* bytes without a zero that one COBS code can announce */

static bool is_whole(const struct ferrule_link *link)
{
    const uint8_t *frame = (const uint8_t *)link->frame;
    const uint32_t bytes = link->received;
    if (link->block_left != 0u || bytes < FERRULE_FRAME_HEADER + FERRULE_FRAME_TRAILER ||
        bytes > FERRULE_FRAME_MAX) {
        return false;
    }
    const uint8_t *trailer = frame + bytes - FERRULE_FRAME_TRAILER;
    const uint32_t crc = (uint32_t)trailer[0] | (uint32_t)trailer[1] << 8 |
                         (uint32_t)trailer[2] << 16 | (uint32_t)trailer[3] << 24;
    return ferrule_crc32(frame, bytes - FERRULE_FRAME_TRAILER) == crc;
}

/* Takes bytes up to the end of a piece, and returns what ended it: 0, or -1 when nothing is left.
 * The state is in locals meanwhile: this loop is most of what a transfer costs. */
static int32_t decode(struct ferrule_link *link)
{
    const struct ferrule_link_port port = *link->port;
    uint8_t *frame = (uint8_t *)link->frame;
    uint32_t received = link->received;
    uint32_t block_left = link->block_left;
    bool block_ends_in_zero = link->block_ends_in_zero;
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
        if (received < FERRULE_FRAME_MAX) {
            frame[received++] = decoded;
        } else {
            received = FERRULE_FRAME_MAX + 1u; /* too long: no CRC can save it */
        }
    }
    link->received = received;
    link->block_left = (uint8_t)block_left;
    link->block_ends_in_zero = block_ends_in_zero;
    return byte;
}

bool ferrule_frame_receive(struct ferrule_link *link, uint32_t *bytes)
{
    while (decode(link) == 0) {
        const bool whole = is_whole(link);
        *bytes = link->received - FERRULE_FRAME_TRAILER;
        link->received = 0;
        link->block_left = 0;
        link->block_ends_in_zero = false;
        if (whole) {
            return true;
        }
    }
    return false;
}

void ferrule_frame_send(struct ferrule_link *link, uint32_t bytes)
{
    const struct ferrule_link_port *port = link->port;
    uint8_t *frame = (uint8_t *)link->frame;
    const uint32_t crc = ferrule_crc32(frame, bytes);
    const uint32_t end = bytes + FERRULE_FRAME_TRAILER;
    for (uint32_t i = 0; i < FERRULE_FRAME_TRAILER; i++) {
        frame[bytes + i] = (uint8_t)(crc >> (8u * i));
    }

    port->write_byte(port->context, 0u); /* ends whatever noise stands before */
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
            begin++; /* the code stands for this zero */
        }
    }
    port->write_byte(port->context, 0u);
}
