/* The file of a recording: its name, its memory, its growth.
 *
 * The file is made anew, never opened through a link, and mapped as a whole. It grows while it is
 * written, so that a full file system is an error here and not a SIGBUS in the program. Nobody may
 * shorten it while the program runs. The process holds a lock (flock(2)) on the file while it
 * lives.
 *
 * The first bytes are written to memory (spw_record_file_begin), then to a file without a name,
 * which gets its name last (spw_record_file_publish). So a file of that name is a valid recording
 * whenever the process is killed. If the file system has no nameless files, or /proc is missing,
 * the file has its name from the start and is empty for a moment.
 *
 * Locking: the caller serialises. No allocation by malloc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_RECORD_PATH = 1024 };

/* Starts as all zero bytes. */
struct spw_record_file {
    int fd;
    uint64_t device, inode; /* of the file, to recognise a descriptor that the program closed */
    uint8_t *map;           /* NULL: there is no file */
    size_t map_bytes;       /* the most that the file may have */
    size_t backed;          /* bytes that may be touched */
    char path[SPW_RECORD_PATH];
};

/* Reserves the addresses that the file will have, with memory for its first `first` bytes. `path`
 * is absolute. `limit` is the most bytes of the file; with `permille`, the share of the file
 * system's free space. False, after one line of log, on failure. */
bool spw_record_file_begin(struct spw_record_file *file, const char *path, uint64_t limit,
                           bool permille, size_t first);

/* Makes the file, writes the first `used` bytes of that memory to it, and maps it at the same
 * addresses. Replaces a recording of an earlier run. If another file is there, or the recording of
 * another process of this run, the name is PATH.PID. False, after one line of log, on failure; the
 * memory is unmapped then. */
bool spw_record_file_publish(struct spw_record_file *file, uint64_t start_ticks, size_t used);

/* Makes the first `bytes` of the mapping usable; false when the file system has no room. */
bool spw_record_file_grow(struct spw_record_file *file, size_t bytes);

/* Cuts the file at `bytes` and closes it. The mapping stays, as other threads may still read it. */
void spw_record_file_end(struct spw_record_file *file, size_t bytes);

/* In a child after fork: closes the parent's file. Only async-signal-safe calls. */
void spw_record_file_forget(struct spw_record_file *file);
