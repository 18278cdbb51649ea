/* The result files of this process, and its second shared mapping; the first is in stats.c. All
 * zero bytes is the state before the start.
 *
 * Callers serialise the changes. It lives as long as the process; a child after fork resets it by
 * spw_stats_forget and spw_stats_shm_forget. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Bytes of a path in the statistics, with its end. */
enum { SPW_STATS_PATH = 1024 };

enum spw_stats_output { SPW_STATS_FILE, SPW_STATS_RECORDING, SPW_STATS_OUTPUTS };

struct spw_writer;

/* The second shared mapping (shm.h). */
struct spw_stats_room {
    char *address; /* NULL: not created yet */
    size_t bytes;
    bool is_file; /* in the launcher's folder; it must be backed */
    int fd;       /* of the file */
    dev_t device;
    ino_t inode;
};

struct spw_stats_files {
    char beside[SPW_STATS_PATH]; /* the file of the shared memory (output.h) */
    char paths[SPW_STATS_OUTPUTS][SPW_STATS_PATH];
    void (*_Atomic extension)(struct spw_writer *writer); /* see spw_stats_extend; any thread */
    bool at_exit; /* the exit handler, which writes the file, is registered */
    struct spw_stats_room room;
};

extern struct spw_stats_files spw_stats_files;
