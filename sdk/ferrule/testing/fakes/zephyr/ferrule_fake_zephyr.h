/* SPDX-License-Identifier: Apache-2.0 */
/** @file Devices of the Zephyr fakes; each is also the serial port with the same number. */
#ifndef FERRULE_FAKE_ZEPHYR_H
#define FERRULE_FAKE_ZEPHYR_H

#include <stdint.h>

#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/pm/device.h>

enum { FERRULE_FAKE_DEVICES = 8 };

const struct device *ferrule_fake_device(uint32_t number, const char *name);
void ferrule_fake_set_ready(uint32_t number, uint32_t ready);
/** Return the calls of pm_device_runtime_get() minus those of pm_device_runtime_put(). */
int32_t ferrule_fake_power_count(uint32_t number);
/** Run the callback of the last pm_device_driver_init(), as power management does. */
int ferrule_fake_power_action(const struct device *dev, enum pm_device_action action);
/** Set the length of a tick, and the rate of k_cycle_get_32(). */
void ferrule_fake_set_clocks(uint32_t us_per_tick, uint32_t cycles_hz);
/** Set the next result of uart_err_check(). */
void ferrule_fake_set_uart_errors(uint32_t number, int32_t errors);
/** Return what was logged since the last reset: a line "<err> text" for each message. */
const char *ferrule_fake_log_text(void);
void ferrule_fake_log_clear(void);

#endif /* FERRULE_FAKE_ZEPHYR_H */
