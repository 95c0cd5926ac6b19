/* SPDX-License-Identifier: Apache-2.0 */
/** @file What the ports to the emulated board mps2-an385 share. */
#ifndef CONFORMANCE_BOARD_H
#define CONFORMANCE_BOARD_H

enum { BOARD_TIMER_INTERRUPT = 8 };

/** @brief Start the UART and the counter. */
void board_begin(void);

/** @brief The timer's handler. */
void board_timer_handler(void);

#endif /* CONFORMANCE_BOARD_H */
