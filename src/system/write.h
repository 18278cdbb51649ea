/* Writes JSON to a file descriptor, through a buffer in the caller's struct.
 *
 * It also works in the program's process and at exit, because it uses no allocation, lock, floating
 * point or locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initialised as {.fd = ...}. */
struct spw_writer {
    int fd;
    bool failed; /* a write failed */
    size_t used;
    char buffer[4096];
};

/* Writes the content of the buffer to the file. */
void spw_write_flush(struct spw_writer *writer);

/* Writes text without any change. */
void spw_write(struct spw_writer *writer, const char *text);

/* Write a number; a string in quotes, with U+FFFD in place of bytes that are not UTF-8 (file names
 * may contain any bytes); a comma, a key and a colon. */
void spw_write_number(struct spw_writer *writer, uint64_t number);
void spw_write_string(struct spw_writer *writer, const char *text);
void spw_write_key(struct spw_writer *writer, const char *key);

/* Write a comma, a key, a colon, and a number or a string. */
void spw_write_figure(struct spw_writer *writer, const char *key, uint64_t number);
void spw_write_text(struct spw_writer *writer, const char *key, const char *text);
