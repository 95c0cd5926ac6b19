/* SPDX-License-Identifier: Apache-2.0 */
/** @file Zephyr's sections of objects of one type, for the host: the linker marks their ends. */
#ifndef FERRULE_FAKE_ZEPHYR_SYS_ITERABLE_SECTIONS_H
#define FERRULE_FAKE_ZEPHYR_SYS_ITERABLE_SECTIONS_H

#define STRUCT_SECTION_ITERABLE(type, name)                                                        \
    struct type name __attribute__((used, section("fake_" #type)))

/* Weak, since a library without such objects has no section. */
#define STRUCT_SECTION_START_EXTERN(type)                                                          \
    extern struct type __start_fake_##type[] __attribute__((weak, visibility("hidden")))
#define STRUCT_SECTION_END_EXTERN(type)                                                            \
    extern struct type __stop_fake_##type[] __attribute__((weak, visibility("hidden")))
#define STRUCT_SECTION_START(type) __start_fake_##type
#define STRUCT_SECTION_END(type)   __stop_fake_##type

#endif /* FERRULE_FAKE_ZEPHYR_SYS_ITERABLE_SECTIONS_H */
