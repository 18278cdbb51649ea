/* Where the ranks of a communicator find each other: a page of shared memory that the process which
 * made the unique id keeps open, and that others on the same machine reach by its number in /proc.
 *
 * Splitting a communicator needs it, because nobody else knows how many ranks chose a colour; and
 * short data travels over it, through a box that each rank has in each communicator.
 * Nothing is left behind in the file system, whatever becomes of the processes.
 *
 * Locking: thread-safe; entries are published one by one and never change. Boxes are used by the
 * streams of their communicators, in an order that their counters keep (exchange.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nccl.h>

struct sim_nccl_board;

/* What a rank says when it splits a communicator. */
struct sim_nccl_board_entry {
    uint64_t communicator; /* a number that its ranks agree on */
    uint32_t split;        /* which split of it */
    int rank;
    int color;
    int key;
};

/* Makes a board for the life of this process, and the id that leads to it. False when the system
 * has no memory or file left. */
bool sim_nccl_board_create(ncclUniqueId *ret_id);

/* The board behind an id, with one reference; NULL if it is not there (the maker is gone, or is on
 * another machine). */
struct sim_nccl_board *sim_nccl_board_open(const ncclUniqueId *id);
struct sim_nccl_board *sim_nccl_board_ref(struct sim_nccl_board *board);
/* NULL is fine. */
void sim_nccl_board_unref(struct sim_nccl_board *board);

/* False when the board is full. */
bool sim_nccl_board_post(struct sim_nccl_board *board, const struct sim_nccl_board_entry *entry);

/* Waits, not for ever, until `count` ranks have posted for that communicator and split; copies
 * their entries, in no order, to memory that the caller frees. NULL when the time is up. */
struct sim_nccl_board_entry *sim_nccl_board_collect(struct sim_nccl_board *board,
                                                    uint64_t communicator, uint32_t split,
                                                    size_t count);

/* Bytes that a box holds. */
#define SIM_NCCL_BOARD_BOX_BYTES ((size_t)64 << 10)

/* What a rank has to say to the others of a communicator. */
struct sim_nccl_board_box {
    uint32_t published; /* how many exchanges the rank has filled its box for */
    uint32_t consumed;  /* how many it has taken from all others' boxes */
    char data[SIM_NCCL_BOARD_BOX_BYTES];
};

/* The boxes of the ranks of a communicator; NULL if there are too many ranks, or communicators. */
struct sim_nccl_board_box *sim_nccl_board_boxes(struct sim_nccl_board *board, uint64_t communicator,
                                                int ranks);
