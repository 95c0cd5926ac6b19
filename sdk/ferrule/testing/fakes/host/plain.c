/* SPDX-License-Identifier: Apache-2.0 */
/* For code without an operating system, and for fakes that are names of the kernel alone. */
#include "fake.h"

void fake_reset_platform(void)
{
}

void fake_port_received(uint32_t port)
{
    (void)port;
}

void fake_platform_event(uint32_t number)
{
    (void)number;
}

void fake_interrupts_unmasked(void)
{
}
