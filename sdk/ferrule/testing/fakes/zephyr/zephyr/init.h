/* SPDX-License-Identifier: Apache-2.0 */
/** @file Zephyr's initialisation levels, which have no meaning on the host. */
#ifndef FERRULE_FAKE_ZEPHYR_INIT_H
#define FERRULE_FAKE_ZEPHYR_INIT_H

#include <zephyr/device.h>

#endif /* FERRULE_FAKE_ZEPHYR_INIT_H */
