/* SPDX-License-Identifier: Apache-2.0 */
#define CMSIS_device_header "device.h"
