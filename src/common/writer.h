/* JSON on its way to a file, through a buffer in the caller's struct.
 *
 * For use inside somebody else's process, also at its end: no allocation, no lock, no floating
 * point, no locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins as {.fd = ...}. */
struct spw_writer {
    int fd;
    bool failed; /* something could not be written */
    size_t used;
    char buffer[4096];
};

/* Writes out what is left. */
void spw_writer_flush(struct spw_writer *writer);

/* Text as it is. */
void spw_write(struct spw_writer *writer, const char *text);

/* A number; a string in quotes, where bytes that are no UTF-8 (names of files may be anything)
 * become U+FFFD; a comma and a key with its colon. */
void spw_write_number(struct spw_writer *writer, uint64_t number);
void spw_write_string(struct spw_writer *writer, const char *text);
void spw_write_key(struct spw_writer *writer, const char *key);

/* A key and its number or string. */
void spw_write_figure(struct spw_writer *writer, const char *key, uint64_t number);
void spw_write_text(struct spw_writer *writer, const char *key, const char *text);
