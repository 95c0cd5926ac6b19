/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STAND_IN_TRACING_USER_H
#define STAND_IN_TRACING_USER_H

void sys_trace_thread_switched_in_user(void);

#endif /* STAND_IN_TRACING_USER_H */
