/* SPDX-License-Identifier: Apache-2.0 */
/* The same device in a firmware without its own handler: the start-up's handler records the
 * fault. */
#include "trace.h"

int main(void)
{
    (void)handle; /* the start-up's vectors stay in use */
    volatile uint32_t *device = (volatile uint32_t *)0x4F000000u;
    begin();
    device[0] = 7;
    note("value", device[0]);
    note("constant", device[1]);
    device[1] = 99;
    end();
}
