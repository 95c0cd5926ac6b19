/* SPDX-License-Identifier: Apache-2.0 */
/* Echoes each byte with some bits flipped. */
#include "guest.h"

int main(void)
{
    start_uart();
    for (;;) {
        put((uint8_t)(get() ^ 0x55u));
    }
}
