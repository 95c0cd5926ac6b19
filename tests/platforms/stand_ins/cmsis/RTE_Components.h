/* SPDX-License-Identifier: Apache-2.0 */
#define CMSIS_device_header "stand_in_device.h"
