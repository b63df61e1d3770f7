/* SANITIZED: a sanitizer (or another libc) wants the allocation functions for itself; tests then count none. */
#ifndef TEST_SANITIZED_H
#define TEST_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define SANITIZED 1
#endif

#endif
