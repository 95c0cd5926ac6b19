/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/drivers/uart_transport.h"

#include "ferrule/port.h"
#include "ferrule/status.h"

/* A time limit: in microseconds, or without a clock in looks at the UART. */
struct limit {
    uint32_t begin;
    uint32_t length;
};

static uint32_t product(uint32_t timeout_ms, uint32_t per_ms)
{
    const uint64_t count = (uint64_t)timeout_ms * per_ms;

    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static struct limit limit_of(const struct ferrule_uart_transport *wire, uint32_t timeout_ms)
{
#ifdef FERRULE_PORT_HAS_CLOCK
    (void)wire;
    return (struct limit){.begin = ferrule_port_now_us(), .length = product(timeout_ms, 1000u)};
#else
    return (struct limit){.begin = 0u, .length = product(timeout_ms, wire->looks_per_ms)};
#endif
}

/* Called after each look. */
static bool is_over(struct limit *limit)
{
#ifdef FERRULE_PORT_HAS_CLOCK
    return ferrule_port_now_us() - limit->begin >= limit->length;
#else
    return limit->begin++ >= limit->length;
#endif
}

int32_t ferrule_uart_transport_write(void *context, const uint8_t *data, size_t bytes,
                                     uint32_t timeout_ms)
{
    const struct ferrule_uart_transport *wire = context;
    struct limit limit = limit_of(wire, timeout_ms);

    for (size_t i = 0; i < bytes; i++) {
        while (!wire->can_write(wire->uart)) {
            if (is_over(&limit)) {
                return FERRULE_ERR_TIMEOUT;
            }
        }
        wire->write_byte(wire->uart, data[i]);
    }
    return FERRULE_OK;
}

int32_t ferrule_uart_transport_read(void *context, uint8_t *data, size_t bytes, uint32_t timeout_ms,
                                    size_t *received)
{
    const struct ferrule_uart_transport *wire = context;
    struct limit limit = limit_of(wire, timeout_ms);
    size_t count = 0;

    while (count < bytes) {
        const int32_t byte = wire->read_byte(wire->uart);
        if (byte >= 0) {
            data[count++] = (uint8_t)byte;
        } else if (is_over(&limit)) {
            break;
        } else {
            /* look again */
        }
    }
    *received = count;
    return count == bytes ? FERRULE_OK : FERRULE_ERR_TIMEOUT;
}
