/* SPDX-License-Identifier: Apache-2.0 */
#define KERNEL_VERSION_STRING "0"
