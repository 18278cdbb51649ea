/* Finds the purpose of each memory block of a PyTorch program, and the events that end the
 * program's steps. The purpose of a block follows from the role of its call site, and from the
 * passes (backward passes and optimizer steps) that begin between its allocation and its free. The
 * input is the events of one recording, in order. Pure; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/roles.h"

enum spw_cli_category {
    SPW_CLI_WEIGHTS, /* parameters and buffers of modules */
    SPW_CLI_GRADIENTS,
    SPW_CLI_OPTIMIZER_STATE,
    SPW_CLI_ACTIVATIONS, /* allocated by the forward pass, live when the backward pass begins */
    SPW_CLI_INPUTS,
    SPW_CLI_WORKSPACES,  /* scratch memory of libraries, communication buffers */
    SPW_CLI_TEMPORARIES, /* freed within the pass that allocated them */
    SPW_CLI_UNKNOWN,
    SPW_CLI_CATEGORIES
};

/* _key: the name in JSON and on the command line (optimizer_state). _name: the name in messages
 * (optimizer state). */
const char *spw_cli_category_key(enum spw_cli_category category);
const char *spw_cli_category_name(enum spw_cli_category category);

/* Properties of an allocation that follow from its call site. */
struct spw_cli_maker {
    enum spw_cli_role role;
    bool autograd; /* made on a thread of the autograd engine */
    bool loop;     /* made on the thread that runs the training loop */
};

/* The numbers of the events that end a step. Memory counts as live at the end of the step if it is
 * live just before this event. */
struct spw_cli_ends {
    uint64_t *events;
    size_t count, capacity;
};

enum { SPW_CLI_LIVES_THREADS = 4096 };

enum spw_cli_pass { SPW_CLI_PASS_OTHER, SPW_CLI_PASS_BACKWARD, SPW_CLI_PASS_OPTIMIZER };

struct spw_cli_lives {
    uint8_t *category; /* indexed by the allocation's event; final after spw_cli_lives_end */
    struct spw_cli_birth *birth; /* indexed by the allocation's event */
    uint64_t capacity;
    enum spw_cli_pass pass;   /* current */
    uint32_t backwards, runs; /* number of backward passes and optimizer steps begun so far */
    uint32_t calls;           /* number of allocations made in calls of modules so far */
    uint64_t *pending;        /* blocks freed after the latest allocation of a backward pass */
    size_t pending_count, pending_capacity;
    bool autograd_threads[SPW_CLI_LIVES_THREADS]; /* indexed by thread; set when the thread
                                                   * allocates */
    struct spw_cli_ends marks, after_runs, after_backwards;
    bool out_of_memory;
};

/* Frees the memory of the struct. A zeroed struct is ready for use, so there is no init
 * function. */
void spw_cli_lives_fini(struct spw_cli_lives *lives);

/* These functions take the events of the recording, which are numbered from 1. _born takes an
 * allocation; `event` is its number. _died takes a free on `thread`; `event` is the number of the
 * block's allocation. _marked takes an event that marks a step. _end takes the end of the
 * recording. Blocks that are live at the end of the recording stay live. */
void spw_cli_lives_born(struct spw_cli_lives *lives, uint64_t event, uint32_t thread,
                        const struct spw_cli_maker *maker);
void spw_cli_lives_died(struct spw_cli_lives *lives, uint64_t event, uint32_t thread);
void spw_cli_lives_marked(struct spw_cli_lives *lives, uint64_t event);
void spw_cli_lives_end(struct spw_cli_lives *lives);

/* Returns the category of the block that the event allocated. Call it after spw_cli_lives_end. */
enum spw_cli_category spw_cli_lives_category(const struct spw_cli_lives *lives, uint64_t event);

/* Returns the ends of steps. If the program marks its steps, they are the marks. Otherwise, if
 * there are at least two optimizer steps, they are the ends of optimizer steps. Otherwise they are
 * the ends of backward passes. *ret_kind names the kind, such as "marked steps". Call it after
 * spw_cli_lives_end. */
const struct spw_cli_ends *spw_cli_lives_steps(const struct spw_cli_lives *lives,
                                               const char **ret_kind);
