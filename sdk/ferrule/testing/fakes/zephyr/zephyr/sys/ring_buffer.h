/* SPDX-License-Identifier: Apache-2.0 */
/** @file Zephyr's ring buffer of bytes, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_SYS_RING_BUFFER_H
#define FERRULE_FAKE_ZEPHYR_SYS_RING_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_buf {
    uint8_t *buffer;
    uint32_t size;
    uint32_t fake_put;     /* total bytes put; the counts wrap */
    uint32_t fake_got;     /* total bytes got */
    uint32_t fake_claimed; /* bytes claimed for put */
    uint32_t fake_lent;    /* bytes claimed for get */
};

#define RING_BUF_DECLARE(name, size8)                                                              \
    static uint8_t fake_ring_buffer_##name[size8];                                                 \
    struct ring_buf name = {.buffer = fake_ring_buffer_##name, .size = (size8)}

void ring_buf_init(struct ring_buf *buf, uint32_t size, uint8_t *data);
void ring_buf_reset(struct ring_buf *buf);
bool ring_buf_is_empty(struct ring_buf *buf);
uint32_t ring_buf_space_get(struct ring_buf *buf);
uint32_t ring_buf_capacity_get(struct ring_buf *buf);
uint32_t ring_buf_size_get(struct ring_buf *buf);
uint32_t ring_buf_put(struct ring_buf *buf, const uint8_t *data, uint32_t size);
uint32_t ring_buf_get(struct ring_buf *buf, uint8_t *data, uint32_t size);
uint32_t ring_buf_put_claim(struct ring_buf *buf, uint8_t **data, uint32_t size);
int ring_buf_put_finish(struct ring_buf *buf, uint32_t size);
uint32_t ring_buf_get_claim(struct ring_buf *buf, uint8_t **data, uint32_t size);
int ring_buf_get_finish(struct ring_buf *buf, uint32_t size);

#endif /* FERRULE_FAKE_ZEPHYR_SYS_RING_BUFFER_H */
