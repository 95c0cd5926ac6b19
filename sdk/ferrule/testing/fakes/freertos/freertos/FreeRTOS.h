/* SPDX-License-Identifier: Apache-2.0 */
/** @file FreeRTOS as ESP-IDF has it, for two cores: critical sections name a spin lock. */
#ifndef FERRULE_FAKE_ESP_FREERTOS_H
#define FERRULE_FAKE_ESP_FREERTOS_H

#include "../FreeRTOS.h"

typedef struct {
    uint32_t fake_held; /* how often; the core that has it may take it again */
} portMUX_TYPE;

#define portMUX_INITIALIZER_UNLOCKED {.fake_held = 0}

void portENTER_CRITICAL(portMUX_TYPE *mux);
void portEXIT_CRITICAL(portMUX_TYPE *mux);
void portENTER_CRITICAL_ISR(portMUX_TYPE *mux);
void portEXIT_CRITICAL_ISR(portMUX_TYPE *mux);
BaseType_t xPortInIsrContext(void);

#endif /* FERRULE_FAKE_ESP_FREERTOS_H */
