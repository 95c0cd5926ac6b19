/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/drivers/uart_transport.h"

#include "ferrule/status.h"

static uint32_t looks(const struct ferrule_uart_transport *wire, uint32_t timeout_ms)
{
    const uint64_t count = (uint64_t)timeout_ms * wire->looks_per_ms;

    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

int32_t ferrule_uart_transport_write(void *context, const uint8_t *data, size_t bytes,
                                     uint32_t timeout_ms)
{
    const struct ferrule_uart_transport *wire = context;
    uint32_t left = looks(wire, timeout_ms);

    for (size_t i = 0; i < bytes; i++) {
        while (!wire->can_write(wire->uart)) {
            if (left == 0u) {
                return FERRULE_ERR_TIMEOUT;
            }
            left--;
        }
        wire->write_byte(wire->uart, data[i]);
    }
    return FERRULE_OK;
}

int32_t ferrule_uart_transport_read(void *context, uint8_t *data, size_t bytes, uint32_t timeout_ms,
                                    size_t *received)
{
    const struct ferrule_uart_transport *wire = context;
    uint32_t left = looks(wire, timeout_ms);
    size_t count = 0;

    while (count < bytes) {
        const int32_t byte = wire->read_byte(wire->uart);
        if (byte >= 0) {
            data[count++] = (uint8_t)byte;
        } else if (left == 0u) {
            break;
        } else {
            left--;
        }
    }
    *received = count;
    return count == bytes ? FERRULE_OK : FERRULE_ERR_TIMEOUT;
}
