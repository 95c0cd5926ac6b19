/* SPDX-License-Identifier: Apache-2.0 */
/** @file Zephyr's masking of interrupts, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_IRQ_H
#define FERRULE_FAKE_ZEPHYR_IRQ_H

unsigned int irq_lock(void);
void irq_unlock(unsigned int key);

#endif /* FERRULE_FAKE_ZEPHYR_IRQ_H */
