/* SPDX-License-Identifier: Apache-2.0 */
/** @file Zephyr's log, which ferrule_fake_log_text() returns, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_LOGGING_LOG_H
#define FERRULE_FAKE_ZEPHYR_LOGGING_LOG_H

__attribute__((format(printf, 2, 3))) void ferrule_fake_log(const char *level, const char *format,
                                                            ...);

#define LOG_MODULE_REGISTER(...) _Static_assert(1, "nothing to register")
#define LOG_MODULE_DECLARE(...)  _Static_assert(1, "nothing to declare")
#define LOG_ERR(...)             ferrule_fake_log("err", __VA_ARGS__)
#define LOG_WRN(...)             ferrule_fake_log("wrn", __VA_ARGS__)

#endif /* FERRULE_FAKE_ZEPHYR_LOGGING_LOG_H */
