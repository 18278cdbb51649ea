/* The exports of this process, and the socket over which other processes get them. All zero bytes
 * is the state before the first export.
 *
 * The state lives as long as the process. In a child after fork, spw_ipc_server_forget resets
 * it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/map.h"
#include "ipc/handle.h"
#include "ipc/message.h"

/* Guarded by spw_locks.exports, except `count`. */
struct spw_ipc_exports {
    _Atomic size_t count;   /* while it is 0, a free need not search the table */
    struct spw_map entries; /* struct entry of table.c, by address */
    uint64_t last_id;
    struct spw_ipc_answer answer; /* the answer that is being sent, together with `fds` */
    int fds[SPW_IPC_BATCH];
};

/* The listening socket. Guarded by spw_locks.exporting. The thread that answers reads it without
 * the lock. */
struct spw_ipc_server {
    int fd;
    dev_t device;
    ino_t inode;                  /* 0: there is no socket */
    struct spw_ipc_handle handle; /* contains the name of this process and of the socket */
    bool runs;
};

struct spw_ipc {
    struct spw_ipc_exports exports;
    struct spw_ipc_server server;
};

extern struct spw_ipc spw_ipc;
