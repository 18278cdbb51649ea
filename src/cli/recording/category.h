/* Finds the purpose of each block of a PyTorch program, and the ends of the program's steps. It
 * uses the role of the block's call site, and the passes (backward passes, optimizer steps) between
 * allocation and free. The input is the events of one recording, in order. Pure; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/roles.h"

enum spw_cli_category {
    SPW_CLI_WEIGHTS, /* parameters and buffers of modules */
    SPW_CLI_GRADIENTS,
    SPW_CLI_OPTIMIZER_STATE,
    SPW_CLI_ACTIVATIONS, /* made by the forward pass, alive when the backward pass begins */
    SPW_CLI_INPUTS,
    SPW_CLI_WORKSPACES,  /* scratch memory of libraries, buffers of communication */
    SPW_CLI_TEMPORARIES, /* freed within the pass that made them */
    SPW_CLI_UNKNOWN,
    SPW_CLI_CATEGORIES
};

/* _key: the name in JSON and on the command line (optimizer_state). _name: the name in messages
 * (optimizer state). */
const char *spw_cli_category_key(enum spw_cli_category category);
const char *spw_cli_category_name(enum spw_cli_category category);

/* An allocation's properties, from its call site. */
struct spw_cli_maker {
    enum spw_cli_role role;
    bool autograd; /* on a thread of the autograd engine */
    bool loop;     /* on the thread that runs the program's training loop */
};

/* The numbers of the events that end steps. Memory that is live just before such an event is live
 * at the end of the step. */
struct spw_cli_ends {
    uint64_t *events;
    size_t count, capacity;
};

enum { SPW_CLI_LIVES_THREADS = 4096 };

enum spw_cli_pass { SPW_CLI_PASS_OTHER, SPW_CLI_PASS_BACKWARD, SPW_CLI_PASS_OPTIMIZER };

struct spw_cli_lives {
    uint8_t *category;           /* by the allocation's event; final after spw_cli_lives_end */
    struct spw_cli_birth *birth; /* by the allocation's event */
    uint64_t capacity;
    enum spw_cli_pass pass;   /* current */
    uint32_t backwards, runs; /* backward passes and optimizer steps begun so far */
    uint32_t calls;           /* allocations in calls of modules so far */
    uint64_t *pending;        /* blocks freed after the latest allocation of a backward pass */
    size_t pending_count, pending_capacity;
    bool autograd_threads[SPW_CLI_LIVES_THREADS]; /* by thread; set at their allocations */
    struct spw_cli_ends marks, after_runs, after_backwards;
    bool out_of_memory;
};

/* A zeroed struct is ready for use. */
void spw_cli_lives_fini(struct spw_cli_lives *lives);

/* _born takes an allocation, which is the event number `event` (from 1 on). _died takes the free,
 * by `thread`, of the block that `event` allocated. _marked takes the event `event`, by which the
 * program marks a step. _end takes the end of the recording; blocks that are live then stay live.
 */
void spw_cli_lives_born(struct spw_cli_lives *lives, uint64_t event, uint32_t thread,
                        const struct spw_cli_maker *maker);
void spw_cli_lives_died(struct spw_cli_lives *lives, uint64_t event, uint32_t thread);
void spw_cli_lives_marked(struct spw_cli_lives *lives, uint64_t event);
void spw_cli_lives_end(struct spw_cli_lives *lives);

/* The category of the block that an event allocated. Called after spw_cli_lives_end. */
enum spw_cli_category spw_cli_lives_category(const struct spw_cli_lives *lives, uint64_t event);

/* The ends of steps: the program's marks if there are any, otherwise the ends of optimizer steps if
 * there are at least two, otherwise the ends of backward passes. *ret_kind names the kind, such as
 * "marked steps". Called after spw_cli_lives_end. */
const struct spw_cli_ends *spw_cli_lives_steps(const struct spw_cli_lives *lives,
                                               const char **ret_kind);
