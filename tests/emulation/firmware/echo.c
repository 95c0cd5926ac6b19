/* SPDX-License-Identifier: Apache-2.0 */
/* Sends each byte back with some bits turned. */
#include "guest.h"

int main(void)
{
    start_uart();
    for (;;) {
        put((uint8_t)(get() ^ 0x55u));
    }
}
