/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <zephyr/sys/ring_buffer.h>

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void ring_buf_init(struct ring_buf *buf, uint32_t size, uint8_t *data)
{
    *buf = (struct ring_buf){.buffer = data, .size = size};
}

void ring_buf_reset(struct ring_buf *buf)
{
    ring_buf_init(buf, buf->size, buf->buffer);
}

bool ring_buf_is_empty(struct ring_buf *buf)
{
    return buf->fake_put == buf->fake_got + buf->fake_lent;
}

uint32_t ring_buf_capacity_get(struct ring_buf *buf)
{
    return buf->size;
}

uint32_t ring_buf_size_get(struct ring_buf *buf)
{
    return buf->fake_put - buf->fake_got - buf->fake_lent;
}

uint32_t ring_buf_space_get(struct ring_buf *buf)
{
    return buf->size - (buf->fake_put + buf->fake_claimed - buf->fake_got);
}

uint32_t ring_buf_put_claim(struct ring_buf *buf, uint8_t **data, uint32_t size)
{
    const uint32_t at = (buf->fake_put + buf->fake_claimed) % buf->size;
    const uint32_t bytes = least(least(size, ring_buf_space_get(buf)), buf->size - at);
    *data = &buf->buffer[at];
    buf->fake_claimed += bytes;
    return bytes;
}

int ring_buf_put_finish(struct ring_buf *buf, uint32_t size)
{
    if (size > buf->fake_claimed) {
        return -EINVAL;
    }
    buf->fake_put += size;
    buf->fake_claimed = 0;
    return 0;
}

uint32_t ring_buf_get_claim(struct ring_buf *buf, uint8_t **data, uint32_t size)
{
    const uint32_t at = (buf->fake_got + buf->fake_lent) % buf->size;
    const uint32_t bytes = least(least(size, ring_buf_size_get(buf)), buf->size - at);
    *data = &buf->buffer[at];
    buf->fake_lent += bytes;
    return bytes;
}

int ring_buf_get_finish(struct ring_buf *buf, uint32_t size)
{
    if (size > buf->fake_lent) {
        return -EINVAL;
    }
    buf->fake_got += size;
    buf->fake_lent = 0;
    return 0;
}

uint32_t ring_buf_put(struct ring_buf *buf, const uint8_t *data, uint32_t size)
{
    uint32_t done = 0;
    for (int part = 0; part < 2; part++) { /* up to the end of the memory, and from its start */
        uint8_t *to = NULL;
        const uint32_t bytes = ring_buf_put_claim(buf, &to, size - done);
        memcpy(to, &data[done], bytes);
        done += bytes;
    }
    (void)ring_buf_put_finish(buf, done);
    return done;
}

uint32_t ring_buf_get(struct ring_buf *buf, uint8_t *data, uint32_t size)
{
    uint32_t done = 0;
    for (int part = 0; part < 2; part++) {
        uint8_t *from = NULL;
        const uint32_t bytes = ring_buf_get_claim(buf, &from, size - done);
        if (data != NULL) { /* NULL: discard the bytes */
            memcpy(&data[done], from, bytes);
        }
        done += bytes;
    }
    (void)ring_buf_get_finish(buf, done);
    return done;
}
