/* The purpose of a PyTorch program's memory, and the ends of its steps, from the role of each call
 * site and the lives of its blocks relative to backward passes and optimizer steps. The input is
 * the events of one recording, in order. Pure; one thread. */
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

/* The name in JSON and on the command line (optimizer_state), and in messages (optimizer state). */
const char *spw_cli_category_key(enum spw_cli_category category);
const char *spw_cli_category_name(enum spw_cli_category category);

/* An allocation's properties, from its call site. */
struct spw_cli_maker {
    enum spw_cli_role role;
    bool autograd; /* on a thread of the autograd engine */
    bool loop;     /* on the thread that runs the program's training loop */
};

/* The events that end steps, by number. Memory that is live before the event is live at the end. */
struct spw_cli_ends {
    uint64_t *events;
    size_t count, capacity;
};

enum { SPW_CLI_LIVES_THREADS = 4096 };

enum spw_cli_pass { SPW_CLI_PASS_OTHER, SPW_CLI_PASS_BACKWARD, SPW_CLI_PASS_OPTIMIZER };

struct spw_cli_lives {
    uint8_t *category;           /* by event of the allocation; final after spw_cli_lives_end */
    struct spw_cli_birth *birth; /* likewise */
    uint64_t capacity;
    enum spw_cli_pass pass;   /* current */
    uint32_t backwards, runs; /* backward passes, and runs of optimizers, that have begun */
    uint32_t calls;           /* allocations in calls of modules */
    uint64_t *pending;        /* freed after the last known allocation of a backward pass */
    size_t pending_count, pending_capacity;
    bool autograd_threads[SPW_CLI_LIVES_THREADS]; /* by number, found by their allocations */
    struct spw_cli_ends marks, after_runs, after_backwards;
    bool out_of_memory;
};

/* A zeroed struct is ready for use. */
void spw_cli_lives_fini(struct spw_cli_lives *lives);

/* Take an allocation, the event of number `event`, from 1 on; the free of the block of that event
 * by a thread; the program's own mark of a step, the event of that number; the end of the
 * recording, where live blocks stay live. */
void spw_cli_lives_born(struct spw_cli_lives *lives, uint64_t event, uint32_t thread,
                        const struct spw_cli_maker *maker);
void spw_cli_lives_died(struct spw_cli_lives *lives, uint64_t event, uint32_t thread);
void spw_cli_lives_marked(struct spw_cli_lives *lives, uint64_t event);
void spw_cli_lives_end(struct spw_cli_lives *lives);

/* The category of the block that an event allocated. Called after spw_cli_lives_end. */
enum spw_cli_category spw_cli_lives_category(const struct spw_cli_lives *lives, uint64_t event);

/* The ends of steps: the program's marks, or the runs of optimizers if there are two or more, or
 * the backward passes. *ret_kind names them, as "marked steps". Called after spw_cli_lives_end. */
const struct spw_cli_ends *spw_cli_lives_steps(const struct spw_cli_lives *lives,
                                               const char **ret_kind);
