/* The board: shared memory through which the ranks of a communicator communicate. The process that
 * created the unique id keeps the memory's file descriptor open. Other processes on the machine
 * open the memory through /proc. No file remains, even if processes are killed.
 *
 * ncclCommSplit needs the board, because a rank does not know how many ranks chose the same color.
 * Ranks also exchange short data through the board. For this purpose, each rank has a box in each
 * communicator.
 *
 * Locking: thread-safe; entries are published one by one and never change. The boxes are used by
 * streams of the communicators, in an order that the boxes' counters enforce (exchange.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nccl.h>

struct sim_nccl_board;

/* The arguments of one rank to ncclCommSplit(). */
struct sim_nccl_board_entry {
    uint64_t communicator; /* the communicator's number, the same on all of its ranks */
    uint32_t split;        /* the index of the split in the communicator */
    int rank;
    int color;
    int key;
};

/* Creates a board and its id. The board lives as long as this process. False without memory or file
 * descriptors. */
bool sim_nccl_board_create(ncclUniqueId *ret_id);

/* Opens the board of an id, with one reference. NULL if its creator has ended or is on another
 * machine. sim_nccl_board_ref() takes another reference; it accepts NULL. */
struct sim_nccl_board *sim_nccl_board_open(const ncclUniqueId *id);
struct sim_nccl_board *sim_nccl_board_ref(struct sim_nccl_board *board);
/* Drops a reference; the last one unmaps the board. Accepts NULL. */
void sim_nccl_board_unref(struct sim_nccl_board *board);
/* Keeps the board mapped after the last reference is dropped. */
void sim_nccl_board_keep(struct sim_nccl_board *board);

/* Publishes a copy of the entry. False when the board is full. */
bool sim_nccl_board_post(struct sim_nccl_board *board, const struct sim_nccl_board_entry *entry);

/* Waits, for a minute at most, until `count` ranks have published an entry for that communicator
 * and split. Returns an array of copies, in no particular order, which the caller frees; NULL after
 * a minute or without host memory. */
struct sim_nccl_board_entry *sim_nccl_board_collect(struct sim_nccl_board *board,
                                                    uint64_t communicator, uint32_t split,
                                                    size_t count);

/* Capacity of a box in bytes. */
#define SIM_NCCL_BOARD_BOX_BYTES ((size_t)64 << 10)

/* The box of a rank in a communicator: the data that the rank shows to the other ranks. */
struct sim_nccl_board_box {
    uint32_t published; /* last exchange whose data are in the box */
    uint32_t consumed;  /* last exchange whose boxes the rank has read */
    char data[SIM_NCCL_BOARD_BOX_BYTES];
};

/* The boxes of a communicator's ranks, in order. NULL if the board has no room for them. Never
 * freed. */
struct sim_nccl_board_box *sim_nccl_board_boxes(struct sim_nccl_board *board, uint64_t communicator,
                                                int ranks);
