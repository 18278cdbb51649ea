#include "cli/recording/category.h"

#include "common/grow.h"

#include <stdlib.h>
#include <string.h>

/* EARLY: a block of the forward pass that was freed before the first backward pass.
 * spw_cli_lives_end decides its category. */
enum { FIRST = 1024, EARLY = SPW_CLI_CATEGORIES, UNBORN = 0xff, ALIVE = 0x80 };

/* The counts at a block's allocation. */
struct spw_cli_birth {
    uint32_t backwards, runs; /* begun so far */
    uint32_t calls;           /* allocations of modules so far */
};

static const struct {
    const char *key, *name;
} names[SPW_CLI_CATEGORIES] = {
    {"weights", "weights"},
    {"gradients", "gradients"},
    {"optimizer_state", "optimizer state"},
    {"activations", "activations"},
    {"inputs", "inputs"},
    {"workspaces", "workspaces"},
    {"temporaries", "temporaries"},
    {"unknown", "unknown"},
};

const char *spw_cli_category_key(enum spw_cli_category category)
{
    return names[category].key;
}

const char *spw_cli_category_name(enum spw_cli_category category)
{
    return names[category].name;
}

/* ---- memory ---- */

void spw_cli_lives_fini(struct spw_cli_lives *lives)
{
    free(lives->category);
    free(lives->birth);
    free(lives->pending);
    free(lives->marks.events);
    free(lives->after_runs.events);
    free(lives->after_backwards.events);
    memset(lives, 0, sizeof(*lives));
}

static bool append(uint64_t **list, size_t *count, size_t *capacity, uint64_t number)
{
    if (!SPW_GROW(list, capacity, *count + 1)) {
        return false;
    }
    (*list)[(*count)++] = number;
    return true;
}

static bool reserve(struct spw_cli_lives *lives, uint64_t event)
{
    uint64_t room = lives->capacity == 0 ? FIRST : lives->capacity;

    while (room <= event) {
        room *= 2;
    }
    if (room == lives->capacity) {
        return true;
    }
    if (!SPW_RESIZE(&lives->category, room) || !SPW_RESIZE(&lives->birth, room)) {
        lives->out_of_memory = true;
        return false;
    }
    memset(lives->category + lives->capacity, UNBORN, room - lives->capacity);
    lives->capacity = room;
    return true;
}

static void end_step(struct spw_cli_lives *lives, struct spw_cli_ends *ends, uint64_t event)
{
    lives->out_of_memory |= !append(&ends->events, &ends->count, &ends->capacity, event);
}

/* ---- passes ---- */

/* Sets the category of the pending blocks. These blocks were freed after the latest allocation of a
 * backward pass, by threads that do not belong to the autograd engine. If the backward pass was
 * over at their free, they are gradients. */
static void resolve(struct spw_cli_lives *lives, enum spw_cli_category category)
{
    for (size_t i = 0; i < lives->pending_count; i++) {
        lives->category[lives->pending[i]] = (uint8_t)category;
    }
    lives->pending_count = 0;
}

static void enter(struct spw_cli_lives *lives, enum spw_cli_pass pass, uint64_t event)
{
    if (pass == SPW_CLI_PASS_BACKWARD) {
        resolve(lives, SPW_CLI_TEMPORARIES);
    } else {
        resolve(lives, SPW_CLI_GRADIENTS);
    }
    if (pass == lives->pass) {
        return;
    }
    if (lives->pass == SPW_CLI_PASS_BACKWARD) {
        end_step(lives, &lives->after_backwards, event);
    } else if (lives->pass == SPW_CLI_PASS_OPTIMIZER) {
        end_step(lives, &lives->after_runs, event);
    }
    lives->backwards += pass == SPW_CLI_PASS_BACKWARD;
    lives->runs += pass == SPW_CLI_PASS_OPTIMIZER;
    lives->pass = pass;
}

static bool is_autograd(const struct spw_cli_lives *lives, uint32_t thread)
{
    return thread < SPW_CLI_LIVES_THREADS && lives->autograd_threads[thread];
}

/* Updates the current pass from an allocation. An allocation of scratch memory does not show the
 * pass. An allocation on a thread that belongs neither to the training loop nor to the autograd
 * engine does not show it either. */
static void follow(struct spw_cli_lives *lives, uint64_t event, uint32_t thread,
                   const struct spw_cli_maker *maker)
{
    if (maker->autograd && thread < SPW_CLI_LIVES_THREADS) {
        lives->autograd_threads[thread] = true;
    }
    if (maker->role == SPW_CLI_ROLE_BACKWARD) {
        enter(lives, SPW_CLI_PASS_BACKWARD, event);
    } else if (maker->autograd || !maker->loop || maker->role == SPW_CLI_ROLE_WORKSPACE ||
               maker->role == SPW_CLI_ROLE_COMMUNICATION || maker->role == SPW_CLI_ROLE_NONE) {
        return;
    } else if (maker->role == SPW_CLI_ROLE_OPTIMIZER || maker->role == SPW_CLI_ROLE_STATE) {
        enter(lives, SPW_CLI_PASS_OPTIMIZER, event);
    } else {
        enter(lives, SPW_CLI_PASS_OTHER, event);
    }
}

void spw_cli_lives_born(struct spw_cli_lives *lives, uint64_t event, uint32_t thread,
                        const struct spw_cli_maker *maker)
{
    if (!reserve(lives, event)) {
        return;
    }
    follow(lives, event, thread, maker);
    lives->calls += maker->role == SPW_CLI_ROLE_FORWARD;
    lives->category[event] = (uint8_t)(ALIVE | (unsigned)maker->role);
    lives->birth[event] = (struct spw_cli_birth){lives->backwards, lives->runs, lives->calls};
}

/* ---- lives ---- */

/* Returns the category of a block that was allocated by the forward pass, or by the code around the
 * pass. */
static unsigned of_forward(const struct spw_cli_lives *lives, enum spw_cli_role role,
                           const struct spw_cli_birth *birth, bool freed, bool by_autograd)
{
    uint32_t passes = lives->backwards - birth->backwards;

    if (by_autograd || passes == 1) {
        return SPW_CLI_ACTIVATIONS;
    }
    if (passes == 0 && freed) {
        return lives->backwards > 0 ? SPW_CLI_TEMPORARIES : EARLY;
    }
    if (passes == 0) {
        return role == SPW_CLI_ROLE_FORWARD ? SPW_CLI_ACTIVATIONS : SPW_CLI_UNKNOWN;
    }
    /* The block outlived a step: the program keeps an output, or the block is older than the first
     * step. */
    return role == SPW_CLI_ROLE_FORWARD || birth->backwards > 0 ? SPW_CLI_ACTIVATIONS
                                                                : SPW_CLI_UNKNOWN;
}

/* The category of a block of the autograd engine. UNKNOWN: the next allocation decides
 * (resolve). */
static unsigned of_backward(const struct spw_cli_lives *lives, const struct spw_cli_birth *birth,
                            bool freed, bool by_autograd)
{
    bool same = lives->pass == SPW_CLI_PASS_BACKWARD && birth->backwards == lives->backwards;

    return !freed || !same ? SPW_CLI_GRADIENTS
           : by_autograd   ? SPW_CLI_TEMPORARIES
                           : SPW_CLI_UNKNOWN;
}

static unsigned judge(const struct spw_cli_lives *lives, uint64_t event, bool freed,
                      bool by_autograd)
{
    enum spw_cli_role role = (enum spw_cli_role)(lives->category[event] & ~ALIVE);
    const struct spw_cli_birth *birth = &lives->birth[event];

    switch (role) {
    case SPW_CLI_ROLE_SETUP:
        return freed && lives->backwards == birth->backwards && lives->calls == birth->calls
                   ? SPW_CLI_TEMPORARIES
                   : SPW_CLI_WEIGHTS;
    case SPW_CLI_ROLE_SHARD:
        return freed && lives->backwards - birth->backwards < 2 ? SPW_CLI_WORKSPACES
                                                                : SPW_CLI_WEIGHTS;
    case SPW_CLI_ROLE_INPUT:
        return SPW_CLI_INPUTS;
    case SPW_CLI_ROLE_FORWARD:
    case SPW_CLI_ROLE_OTHER:
        return of_forward(lives, role, birth, freed, by_autograd);
    case SPW_CLI_ROLE_BACKWARD:
        return of_backward(lives, birth, freed, by_autograd);
    case SPW_CLI_ROLE_STATE:
        return SPW_CLI_OPTIMIZER_STATE;
    case SPW_CLI_ROLE_OPTIMIZER:
        return freed && lives->pass == SPW_CLI_PASS_OPTIMIZER && birth->runs == lives->runs
                   ? SPW_CLI_TEMPORARIES
                   : SPW_CLI_OPTIMIZER_STATE;
    case SPW_CLI_ROLE_WORKSPACE:
    case SPW_CLI_ROLE_COMMUNICATION:
        return SPW_CLI_WORKSPACES;
    default:
        return SPW_CLI_UNKNOWN;
    }
}

static bool is_alive(const struct spw_cli_lives *lives, uint64_t event)
{
    return event < lives->capacity && lives->category[event] != UNBORN &&
           (lives->category[event] & ALIVE) != 0;
}

void spw_cli_lives_died(struct spw_cli_lives *lives, uint64_t event, uint32_t thread)
{
    bool by_autograd = is_autograd(lives, thread), is_gradient;
    unsigned category;

    if (!is_alive(lives, event)) {
        return;
    }
    is_gradient = (lives->category[event] & ~ALIVE) == SPW_CLI_ROLE_BACKWARD;
    category = judge(lives, event, /* freed */ true, by_autograd);
    lives->category[event] = (uint8_t)category;
    if (is_gradient && category == SPW_CLI_UNKNOWN &&
        !append(&lives->pending, &lives->pending_count, &lives->pending_capacity, event)) {
        lives->out_of_memory = true;
    }
}

void spw_cli_lives_marked(struct spw_cli_lives *lives, uint64_t event)
{
    end_step(lives, &lives->marks, event);
}

void spw_cli_lives_end(struct spw_cli_lives *lives)
{
    /* Without a backward pass (inference), memory of the forward pass counts as activations. */
    enum spw_cli_category early = lives->backwards > 0 ? SPW_CLI_TEMPORARIES : SPW_CLI_ACTIVATIONS;

    resolve(lives, SPW_CLI_GRADIENTS);
    for (uint64_t event = 0; event < lives->capacity; event++) {
        if (lives->category[event] == EARLY) {
            lives->category[event] = (uint8_t)early;
        } else if (is_alive(lives, event)) {
            lives->category[event] =
                (uint8_t)judge(lives, event, /* freed */ false, /* by_autograd */ false);
        }
    }
}

enum spw_cli_category spw_cli_lives_category(const struct spw_cli_lives *lives, uint64_t event)
{
    return event < lives->capacity && lives->category[event] < SPW_CLI_CATEGORIES
               ? (enum spw_cli_category)lives->category[event]
               : SPW_CLI_UNKNOWN;
}

const struct spw_cli_ends *spw_cli_lives_steps(const struct spw_cli_lives *lives,
                                               const char **ret_kind)
{
    if (lives->marks.count > 0) {
        *ret_kind = "marked steps";
        return &lives->marks;
    }
    if (lives->after_runs.count >= 2) {
        *ret_kind = "optimizer steps";
        return &lives->after_runs;
    }
    *ret_kind = "backward passes";
    return &lives->after_backwards;
}
