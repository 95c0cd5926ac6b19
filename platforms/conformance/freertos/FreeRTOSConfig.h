/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#define configCPU_CLOCK_HZ 25000000
#ifndef configTICK_RATE_HZ
#define configTICK_RATE_HZ 1000
#endif
#define configTICK_TYPE_WIDTH_IN_BITS        TICK_TYPE_WIDTH_32_BITS
#define configMAX_PRIORITIES                 7
#define configMINIMAL_STACK_SIZE             256
#define configUSE_PREEMPTION                 1
#define configUSE_IDLE_HOOK                  0
#define configUSE_TICK_HOOK                  0
#define configUSE_MUTEXES                    1
#define configSUPPORT_STATIC_ALLOCATION      1
#define configSUPPORT_DYNAMIC_ALLOCATION     0
#define configKERNEL_PROVIDED_STATIC_MEMORY  1
#define configKERNEL_INTERRUPT_PRIORITY      0xe0
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0xa0
#define INCLUDE_uxTaskPriorityGet            1
#define INCLUDE_vTaskDelay                   1
#define INCLUDE_vTaskDelete                  1
#define INCLUDE_vTaskSuspend                 1
#define INCLUDE_xTaskGetCurrentTaskHandle    1
#define INCLUDE_xTaskGetSchedulerState       1

#endif /* FREERTOS_CONFIG_H */
