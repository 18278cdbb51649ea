/* The result files of this process, and its second shared mapping; the first mapping is in stats.c.
 * All zero bytes is the state before the start.
 *
 * Callers serialise the changes. The state lives as long as the process. In a child after fork,
 * spw_stats_forget and spw_stats_shm_forget reset it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Bytes of a path in the statistics, including the terminating zero. */
enum { SPW_STATS_PATH = 1024 };

enum spw_stats_output { SPW_STATS_FILE, SPW_STATS_RECORDING, SPW_STATS_OUTPUTS };

struct spw_writer;

/* The second shared mapping (shm.h). */
struct spw_stats_room {
    char *address; /* NULL: not created yet */
    size_t bytes;
    bool is_file; /* the mapping is a file in the launcher's folder, whose blocks must be
                     allocated */
    int fd;       /* of the file */
    dev_t device;
    ino_t inode;
};

struct spw_stats_files {
    char beside[SPW_STATS_PATH]; /* path of the shared memory's file (output.h) */
    char paths[SPW_STATS_OUTPUTS][SPW_STATS_PATH];
    void (*_Atomic extension)(struct spw_writer *writer); /* the function of spw_stats_extend; any
                                                             thread may use it */
    bool at_exit; /* the exit handler is registered, which writes the file */
    struct spw_stats_room room;
};

extern struct spw_stats_files spw_stats_files;
