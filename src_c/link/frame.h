/* SPDX-License-Identifier: Apache-2.0 */
/** @file Frames on the wire: COBS between zero bytes, a header, and a CRC-32 at the end. */
#ifndef FERRULE_LINK_FRAME_H
#define FERRULE_LINK_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/link.h"

#define FERRULE_FRAME_HEADER  4u /* version, type, sequence (16 bits) */
#define FERRULE_FRAME_TRAILER 4u /* CRC-32 */
#define FERRULE_FRAME_MAX (FERRULE_FRAME_HEADER + FERRULE_LINK_MAX_PAYLOAD + FERRULE_FRAME_TRAILER)

/** @brief CRC-32 as in zlib, of `bytes` bytes. */
uint32_t ferrule_crc32(const uint8_t *data, uint32_t bytes);

/**
 * @brief Read until a whole frame with a right CRC stands in `link->frame`.
 * @retval true   there is one; its length without CRC is in `*bytes`
 * @retval false  nothing is left to read; the next call goes on
 */
bool ferrule_frame_receive(struct ferrule_link *link, uint32_t *bytes);

/** @brief Add the CRC to the first `bytes` bytes of `link->frame` and send them. */
void ferrule_frame_send(struct ferrule_link *link, uint32_t bytes);

#endif /* FERRULE_LINK_FRAME_H */
