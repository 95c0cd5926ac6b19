/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STAND_IN_PRINTK_H
#define STAND_IN_PRINTK_H

__attribute__((format(printf, 1, 2))) void printk(const char *fmt, ...);

#endif /* STAND_IN_PRINTK_H */
