/* The file of a recording: its name, its memory, its growth.
 *
 * The file is always created anew, never opened through a link. It is mapped as a whole and grows
 * while it is written. A full file system therefore causes an error here, and not a SIGBUS in the
 * program. No process may truncate the file while the program runs. The process holds a lock
 * (flock(2)) on the file for as long as the process lives.
 *
 * The first bytes are written to memory (spw_record_file_begin). They are then written to a file
 * without a name, which gets its name last (spw_record_file_publish). A file of that name is
 * therefore a valid recording, whenever the process is killed. If the file system has no nameless
 * files, or if /proc is missing, the file has its name from the start, and is empty for a moment.
 *
 * Locking: the caller serialises. No allocation by malloc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_RECORD_PATH = 1024 };

/* All zero bytes is the state before the start. */
struct spw_record_file {
    int fd;
    uint64_t device, inode; /* of the file; they show whether the program has closed the
                               descriptor */
    uint8_t *map;           /* NULL: there is no file */
    size_t map_bytes;       /* the largest size that the file may have */
    size_t backed;          /* bytes of the mapping that may be accessed */
    char path[SPW_RECORD_PATH];
};

/* Reserves the addresses of the future mapping of the file, with memory for its first `first`
 * bytes. `path` is absolute. `limit` is the largest size of the file, in bytes or, with `permille`,
 * as a share of the file system's free space. On failure, logs one line and returns false. */
bool spw_record_file_begin(struct spw_record_file *file, const char *path, uint64_t limit,
                           bool permille, size_t first);

/* Creates the file, writes the first `used` bytes of that memory to it, and maps it at the same
 * addresses. Replaces a recording of an earlier run. If another file has the name, or the recording
 * of another process of this run, the file is called PATH.PID. On failure, logs one line, unmaps
 * the memory and returns false. */
bool spw_record_file_publish(struct spw_record_file *file, uint64_t start_ticks, size_t used);

/* Makes the first `bytes` of the mapping usable. Returns false if the file system has no room. */
bool spw_record_file_grow(struct spw_record_file *file, size_t bytes);

/* Truncates the file to `bytes` and closes it. The mapping stays, because other threads may still
 * read it. */
void spw_record_file_end(struct spw_record_file *file, size_t bytes);

/* In a child after fork: closes the parent's file. Only async-signal-safe calls. */
void spw_record_file_forget(struct spw_record_file *file);
