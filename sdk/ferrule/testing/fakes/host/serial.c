/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fake.h"

enum { PORT_BYTES = 65536 };

struct port {
    uint8_t received[PORT_BYTES], sent[PORT_BYTES];
    uint32_t received_bytes, sent_bytes, hook;
};

static struct port ports[FAKE_PORTS];

static bool append(uint8_t *buffer, uint32_t *used, const uint8_t *data, uint32_t bytes)
{
    if (bytes > PORT_BYTES - *used) {
        fake_misuse("more than %d bytes wait at a serial port", PORT_BYTES);
        return false;
    }
    memcpy(&buffer[*used], data, bytes);
    *used += bytes;
    return true;
}

static uint32_t take(uint8_t *buffer, uint32_t *used, uint8_t *data, uint32_t bytes)
{
    const uint32_t taken = bytes < *used ? bytes : *used;
    memcpy(data, buffer, taken);
    *used -= taken;
    memmove(buffer, &buffer[taken], *used);
    return taken;
}

uint32_t fake_port_waiting(uint32_t port)
{
    return ports[port].received_bytes;
}

uint32_t fake_port_read(uint32_t port, uint8_t *data, uint32_t bytes)
{
    fake_lock();
    const uint32_t taken = take(ports[port].received, &ports[port].received_bytes, data, bytes);
    fake_unlock();
    return taken;
}

void fake_port_write(uint32_t port, const uint8_t *data, uint32_t bytes)
{
    fake_lock();
    (void)append(ports[port].sent, &ports[port].sent_bytes, data, bytes);
    const uint32_t hook = ports[port].hook;
    fake_unlock();
    if (hook != 0u) {
        fake_call_hook(hook, false);
    }
}

void fake_reset_ports(void)
{
    for (uint32_t port = 0; port < FAKE_PORTS; port++) {
        ports[port].received_bytes = 0;
        ports[port].sent_bytes = 0;
        ports[port].hook = 0;
    }
}

void ferrule_fake_receive(uint32_t port, const uint8_t *data, uint32_t bytes)
{
    fake_lock();
    const bool received = append(ports[port].received, &ports[port].received_bytes, data, bytes);
    fake_unlock();
    if (received) {
        fake_port_received(port);
    }
}

uint32_t ferrule_fake_sent(uint32_t port, uint8_t *data, uint32_t bytes)
{
    fake_lock();
    const uint32_t taken = take(ports[port].sent, &ports[port].sent_bytes, data, bytes);
    fake_unlock();
    return taken;
}

void ferrule_fake_on_sent(uint32_t port, uint32_t number)
{
    ports[port].hook = number;
}
