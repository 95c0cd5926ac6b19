/* SPDX-License-Identifier: Apache-2.0 */
#include_next <zephyr/irq.h>

#ifndef STAND_IN_ZEPHYR_IRQ_H
#define STAND_IN_ZEPHYR_IRQ_H

#define IRQ_CONNECT(number, priority, handler, argument, flags)                                    \
    stand_in_connect((number), (priority), (handler), (argument), (flags))

void stand_in_connect(unsigned int number, unsigned int priority, void (*handler)(const void *),
                      const void *argument, unsigned int flags);
void irq_enable(unsigned int irq);

#endif /* STAND_IN_ZEPHYR_IRQ_H */
