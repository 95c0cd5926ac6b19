/* SPDX-License-Identifier: Apache-2.0 */
/* What programs call, and adapters do not. */
#include_next <task.h>

#ifndef STAND_IN_TASK_H
#define STAND_IN_TASK_H

#define tskIDLE_PRIORITY 0u

void vTaskStartScheduler(void);
void vTaskSuspend(TaskHandle_t task);

#endif /* STAND_IN_TASK_H */
