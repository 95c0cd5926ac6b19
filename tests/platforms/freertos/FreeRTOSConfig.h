/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#define configCPU_CLOCK_HZ                   25000000
#define configTICK_RATE_HZ                   1000
#define configTICK_TYPE_WIDTH_IN_BITS        TICK_TYPE_WIDTH_32_BITS
#define configMAX_PRIORITIES                 4
#define configMINIMAL_STACK_SIZE             256
#define configUSE_PREEMPTION                 1
#define configUSE_IDLE_HOOK                  0
#define configUSE_TICK_HOOK                  1
#define configUSE_MUTEXES                    1
#define configSUPPORT_STATIC_ALLOCATION      1
#define configSUPPORT_DYNAMIC_ALLOCATION     0
#define configKERNEL_PROVIDED_STATIC_MEMORY  1
#define configKERNEL_INTERRUPT_PRIORITY      0xe0
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0xa0
#define INCLUDE_xTaskGetCurrentTaskHandle    1
#define INCLUDE_uxTaskPriorityGet            1
#define INCLUDE_vTaskDelay                   1
#define INCLUDE_vTaskSuspend                 1

/* names used in src_c/startup/vectors.c */
#define vPortSVCHandler     ferrule_svcall_handler
#define xPortPendSVHandler  ferrule_pendsv_handler
#define xPortSysTickHandler ferrule_systick_handler

#endif /* FREERTOS_CONFIG_H */
