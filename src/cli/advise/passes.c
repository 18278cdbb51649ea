#include "cli/advise/passes.h"

#include "cli/advise/cost.h"
#include "cli/recording/marks.h"
#include "common/minmax.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A block belongs to the open pass, unless the backward pass allocates it. */
uint32_t spw_cli_advise_passes_open(const struct spw_cli_advise_reading *reading, uint32_t thread)
{
    return spw_cli_advise_is_backward(reading, thread) ? SPW_CLI_ADVISE_NONE : reading->pass;
}

/* Returns the module's index, or SPW_CLI_ADVISE_NONE if memory runs out. */
static uint32_t module_of(struct spw_cli_advise_history *history, const char *name)
{
    char *copy;

    for (size_t i = 0; i < history->module_count; i++) {
        if (strcmp(history->modules[i].name, name) == 0) {
            return (uint32_t)i;
        }
    }
    copy = strdup(name);
    if (copy == NULL ||
        !spw_cli_advise_reserve(history, &history->modules, history->module_count,
                                &history->module_capacity, sizeof(*history->modules))) {
        free(copy);
        history->out_of_memory = true;
        return SPW_CLI_ADVISE_NONE;
    }
    history->modules[history->module_count].name = copy;
    return (uint32_t)history->module_count++;
}

/* Only one pass is open at a time. Passes that other threads begin during it are ignored. */
static void begin_pass(struct spw_cli_advise_reading *reading, uint32_t module)
{
    struct spw_cli_advise_history *history = reading->history;

    if (reading->pass == SPW_CLI_ADVISE_NONE && module != SPW_CLI_ADVISE_NONE &&
        spw_cli_advise_reserve(history, &history->passes, history->pass_count,
                               &history->pass_capacity, sizeof(*history->passes))) {
        history->passes[history->pass_count] = (struct spw_cli_advise_pass){
            .module = module,
            .first_change = history->change_count,
            .last_change = SIZE_MAX,
            .again_change = SIZE_MAX,
        };
        reading->pass = (uint32_t)history->pass_count++;
    }
}

static void end_pass(struct spw_cli_advise_reading *reading, uint32_t module)
{
    struct spw_cli_advise_history *history = reading->history;

    if (reading->pass != SPW_CLI_ADVISE_NONE && history->passes[reading->pass].module == module) {
        history->passes[reading->pass].last_change = history->change_count;
        reading->ended = reading->pass;
        reading->pass = SPW_CLI_ADVISE_NONE;
    }
}

/* Records that a block is an argument of a pass. If several passes have this argument, the
 * backward pass reaches the first of them last, so the block is kept for that pass. */
static void take_argument(struct spw_cli_advise_reading *reading, size_t life)
{
    if (reading->history->lives[life].keeper == SPW_CLI_ADVISE_NONE) {
        reading->history->lives[life].keeper = reading->ended;
    }
}

static void take_output(struct spw_cli_advise_reading *reading, size_t life)
{
    reading->history->lives[life].is_output |= reading->history->lives[life].pass == reading->ended;
}

/* Calls `take` for each block in a list of addresses, in hexadecimal digits. Returns the end of the
 * list. */
static char *each_block(struct spw_cli_advise_reading *reading, char *text,
                        void (*take)(struct spw_cli_advise_reading *reading, size_t life))
{
    while (isxdigit((unsigned char)*text)) {
        const struct spw_cli_advise_live *block =
            spw_cli_advise_find_live(reading, strtoull(text, &text, 16));

        if (block != NULL) {
            take(reading, block->life);
        }
        text += *text == ' ';
    }
    return text;
}

/* The tensors of the pass that has just ended (SPW_RECORD_PASS_TENSORS). */
static void take_tensors(struct spw_cli_advise_reading *reading, char *text)
{
    char *end;

    if (reading->ended == SPW_CLI_ADVISE_NONE) {
        return;
    }
    reading->history->passes[reading->ended].number = strtoull(text, &end, 16);
    end = each_block(reading, end + (*end == ' '), take_output);
    if (*end == '-') {
        (void)each_block(reading, end + 1, take_argument);
    }
    reading->ended = SPW_CLI_ADVISE_NONE;
}

/* The backward pass has reached the forward pass with this number. */
static void take_backward(struct spw_cli_advise_reading *reading, uint64_t number)
{
    struct spw_cli_advise_history *history = reading->history;

    for (size_t i = history->pass_count; i-- > 0;) {
        struct spw_cli_advise_pass *pass = &history->passes[i];

        if (pass->number == number) {
            pass->again_change =
                pass->again_change == SIZE_MAX ? history->change_count : pass->again_change;
            return;
        }
    }
}

/* Returns the marked module, a new one for a new name; NULL if memory runs out. */
static struct spw_cli_advise_marked *find_marked(struct spw_cli_advise_reading *reading,
                                                 const char *name)
{
    char *copy;

    for (size_t i = 0; i < reading->marked_count; i++) {
        if (strcmp(reading->marked[i].name, name) == 0) {
            return &reading->marked[i];
        }
    }
    copy = strdup(name);
    if (copy == NULL ||
        !spw_cli_advise_reserve(reading->history, &reading->marked, reading->marked_count,
                                &reading->marked_capacity, sizeof(*reading->marked))) {
        free(copy);
        return NULL;
    }
    reading->marked[reading->marked_count] = (struct spw_cli_advise_marked){.name = copy};
    return &reading->marked[reading->marked_count++];
}

/* The survey finds the modules that contain others. */
static void survey_mark(struct spw_cli_advise_reading *reading, const char *name, bool begins)
{
    struct spw_cli_advise_marked *module = begins ? find_marked(reading, name) : NULL;
    unsigned depth = reading->open;

    if (!begins) {
        reading->open -= reading->open > 0;
        return;
    }
    reading->open++;
    if (module == NULL || depth >= SPW_CLI_ADVISE_DEPTH) {
        return;
    }
    module->depth = depth;
    reading->outer[depth] = (size_t)(module - reading->marked);
    if (depth > 0) {
        reading->marked[reading->outer[depth - 1]].is_outer = true;
        reading->history->depth = depth > reading->history->depth ? depth : reading->history->depth;
    }
}

/* True if the history has modules inside the module, and not the module itself. */
static bool is_left_out(struct spw_cli_advise_reading *reading, const char *name)
{
    const struct spw_cli_advise_marked *module = find_marked(reading, name);

    return module != NULL && module->is_outer && module->depth < reading->depth;
}

void spw_cli_advise_passes_mark(struct spw_cli_advise_reading *reading,
                                const struct spw_cli_event *event)
{
    static const char prefix[] = "module ";
    char name[SPW_CLI_MARK_NAME];
    const char *module = name + sizeof(prefix) - 1;

    if (!spw_cli_advise_begins_with(&event->text, prefix) || event->text.length >= sizeof(name)) {
        return;
    }
    spw_cli_mark_name(event, name);
    if (reading->surveys) {
        survey_mark(reading, module, event->number != 0);
    } else if (!is_left_out(reading, module)) {
        (event->number != 0 ? begin_pass : end_pass)(reading, module_of(reading->history, module));
    }
}

void spw_cli_advise_passes_note(struct spw_cli_advise_reading *reading,
                                const struct spw_cli_event *event)
{
    char text[SPW_RECORD_TEXT + 1];

    (void)snprintf(text, sizeof(text), "%.*s", (int)event->text.length, event->text.bytes);
    if (event->number == SPW_RECORD_PASS_TENSORS) {
        take_tensors(reading, text);
    } else if (event->number == SPW_RECORD_PASS_BACKWARD) {
        take_backward(reading, strtoull(text, NULL, 16));
    }
}

static bool is_saved(const struct spw_cli_advise_history *history,
                     const struct spw_cli_advise_life *life)
{
    const struct spw_cli_advise_pass *pass =
        life->pass != SPW_CLI_ADVISE_NONE ? &history->passes[life->pass] : NULL;

    return pass != NULL && pass->again_change != SIZE_MAX && !life->is_output &&
           life->freed_by_backward && life->last_change != SIZE_MAX &&
           life->last_change >= pass->again_change;
}

/* Returns true if the block is freed before the backward pass reaches its keeper. */
static bool is_kept(const struct spw_cli_advise_history *history,
                    const struct spw_cli_advise_life *life)
{
    const struct spw_cli_advise_pass *keeper =
        life->keeper != SPW_CLI_ADVISE_NONE ? &history->passes[life->keeper] : NULL;

    return keeper != NULL && keeper->done_change != 0 && life->last_change < keeper->again_change;
}

/* Finds the blocks that passes save for backward, and the arguments that they would keep. */
static void find_saved(struct spw_cli_advise_history *history)
{
    for (size_t i = 0; i < history->life_count; i++) {
        struct spw_cli_advise_life *life = &history->lives[i];

        life->is_saved = is_saved(history, life);
        if (life->is_saved) {
            history->passes[life->pass].done_change =
                spw_max(history->passes[life->pass].done_change, life->last_change + 1);
        }
    }
    for (size_t i = 0; i < history->life_count; i++) {
        struct spw_cli_advise_life *life = &history->lives[i];

        life->keeper = is_kept(history, life) ? life->keeper : SPW_CLI_ADVISE_NONE;
    }
}

/* Finds the most memory that the blocks of each pass hold while it runs. */
static void find_work(struct spw_cli_advise_history *history)
{
    for (size_t i = 0; i < history->pass_count; i++) {
        struct spw_cli_advise_pass *pass = &history->passes[i];
        int64_t held = 0;

        for (size_t k = pass->first_change; pass->last_change != SIZE_MAX && k < pass->last_change;
             k++) {
            const struct spw_cli_advise_change *change = &history->changes[k];

            if (change->life != SPW_CLI_ADVISE_NONE && history->lives[change->life].pass == i &&
                !history->lives[change->life].is_output) {
                held += change->bytes;
                pass->work_bytes = spw_max(pass->work_bytes, (uint64_t)(held > 0 ? held : 0));
            }
        }
    }
}

static void find_shares(const struct spw_cli_advise_reading *reading)
{
    struct spw_cli_advise_history *history = reading->history;

    for (size_t i = 0; i < history->module_count; i++) {
        history->modules[i].share = i < reading->module_ns_capacity && reading->kernel_ns > 0
                                        ? reading->module_ns[i] / reading->kernel_ns
                                        : 0;
    }
}

/* Adds the time of a kernel that touches these bytes to the module whose pass is open. */
void spw_cli_advise_passes_charge(struct spw_cli_advise_reading *reading,
                                  const struct spw_cli_event *event, double bytes)
{
    struct spw_cli_advise_history *history = reading->history;
    uint32_t pass = spw_cli_advise_passes_open(reading, event->thread);
    double ns = spw_cli_advise_kernel_ns(bytes);

    reading->kernel_ns += ns;
    if (pass != SPW_CLI_ADVISE_NONE &&
        spw_cli_advise_reserve(history, &reading->module_ns, history->passes[pass].module,
                               &reading->module_ns_capacity, sizeof(*reading->module_ns))) {
        reading->module_ns[history->passes[pass].module] += ns;
    }
}

void spw_cli_advise_passes_finish(struct spw_cli_advise_reading *reading)
{
    find_saved(reading->history);
    find_work(reading->history);
    find_shares(reading);
}
