/* The purpose of the memory of a PyTorch program, told from the role of each call site and from the
 * lives of its blocks relative to backward passes and optimizer steps; and the ends of its steps.
 * Fed with the events of one recording in order. Pure; one thread. */
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

/* The name in JSON and on the command line, optimizer_state, and for people, "optimizer state". */
const char *spw_cli_category_key(enum spw_cli_category category);
const char *spw_cli_category_name(enum spw_cli_category category);

/* An allocation as its call site tells of it. */
struct spw_cli_maker {
    enum spw_cli_role role;
    bool autograd; /* on a thread of the autograd engine */
    bool loop;     /* on the thread that runs the program's training loop */
};

/* Numbers of events at which steps end: what is live at an end was live before that event. */
struct spw_cli_ends {
    uint64_t *events;
    size_t count, capacity;
};

enum { SPW_CLI_LIVES_THREADS = 4096 };

enum spw_cli_pass { SPW_CLI_PASS_OTHER, SPW_CLI_PASS_BACKWARD, SPW_CLI_PASS_OPTIMIZER };

struct spw_cli_lives {
    uint8_t *category;           /* by the number of the allocation's event; final after the end */
    struct spw_cli_birth *birth; /* likewise */
    uint64_t capacity;
    enum spw_cli_pass pass;   /* that the program is in */
    uint32_t backwards, runs; /* backward passes, and runs of optimizers, that have begun */
    uint32_t calls;           /* allocations of modules that are called */
    uint64_t *pending;        /* freed after the last known allocation of a backward pass */
    size_t pending_count, pending_capacity;
    bool autograd_threads[SPW_CLI_LIVES_THREADS]; /* by number, as their allocations show */
    struct spw_cli_ends marks, after_runs, after_backwards;
    bool out_of_memory;
};

/* A zeroed struct is ready for use. */
void spw_cli_lives_fini(struct spw_cli_lives *lives);

/* Event number `event`, from 1 on, allocates. */
void spw_cli_lives_born(struct spw_cli_lives *lives, uint64_t event, uint32_t thread,
                        const struct spw_cli_maker *maker);

/* The block that event `event` has allocated is freed by a thread. */
void spw_cli_lives_died(struct spw_cli_lives *lives, uint64_t event, uint32_t thread);

/* Event number `event` is the program's own mark of a step. */
void spw_cli_lives_marked(struct spw_cli_lives *lives, uint64_t event);

/* The recording ends; blocks that are alive stay so. */
void spw_cli_lives_end(struct spw_cli_lives *lives);

/* After the end, the category of the block that an event has allocated. */
enum spw_cli_category spw_cli_lives_category(const struct spw_cli_lives *lives, uint64_t event);

/* After the end, the ends of steps: those that the program marks, or the runs of optimizers if
 * there are two or more, or the backward passes. *ret_kind is "marked steps" or the like. */
const struct spw_cli_ends *spw_cli_lives_steps(const struct spw_cli_lives *lives,
                                               const char **ret_kind);
