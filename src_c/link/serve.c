/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/link.h"

void ferrule_link_serve(const struct ferrule_link_model *model,
                        const struct ferrule_link_port *port)
{
    static struct ferrule_link link; /* static: keeps a kilobyte of buffer off the stack */
    ferrule_link_init(&link, model, port);
    for (;;) {
        (void)ferrule_link_poll(&link); /* poll again whatever the result */
    }
}
