/* The file of a recording: its name, its memory, its growth.
 *
 * The file is made anew, never followed through a link, and mapped as a whole; it grows while it is
 * written, so that a full file system shows as an error here and not as SIGBUS in somebody's
 * program. Nobody may shorten it while the program runs. A lock (flock(2)) on it says that its
 * process lives.
 *
 * What the file begins with is written into memory first (spw_record_file_begin) and into a file
 * that has no name yet (spw_record_file_publish), so that a file of that name is a recording
 * whenever the process is killed. Where a file needs a name from the start, because the file system
 * cannot do otherwise or /proc is missing, it is empty for a moment.
 *
 * Locking: the caller serialises. No allocation by malloc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_RECORD_PATH = 1024 };

/* Starts as {.fd = -1}. */
struct spw_record_file {
    int fd;
    uint64_t device, inode; /* of the file, to recognise a descriptor that the program closed */
    uint8_t *map;           /* NULL: there is no file */
    size_t map_bytes;       /* the most that the file may have */
    size_t backed;          /* bytes that may be touched */
    char path[SPW_RECORD_PATH];
};

/* Makes room in memory for what the file begins with, at the addresses that the file will have;
 * `first` bytes of it may be touched. `path` is absolute. `limit` is the most bytes of the file;
 * with `permille`, the share of the file system's free space. False, after one line of log, when
 * that fails. */
bool spw_record_file_begin(struct spw_record_file *file, const char *path, uint64_t limit,
                           bool permille, size_t first);

/* Makes the file, with the first `used` bytes of that memory, and maps it in its place. A recording
 * of an earlier run is replaced; if anything else is there, a recording of another process of this
 * run included, the name is PATH.PID. False, after one line of log, when that fails: the memory is
 * gone then. */
bool spw_record_file_publish(struct spw_record_file *file, uint64_t start_ticks, size_t used);

/* Makes the first `bytes` of the mapping usable; false when the file system has no room. */
bool spw_record_file_grow(struct spw_record_file *file, size_t bytes);

/* Cuts the file at `bytes` and closes it. The mapping stays, as other threads may still read it. */
void spw_record_file_end(struct spw_record_file *file, size_t bytes);

/* In a child after fork: closes the parent's file. Only async-signal-safe calls. */
void spw_record_file_forget(struct spw_record_file *file);
