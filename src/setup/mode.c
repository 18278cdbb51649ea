#include "setup/mode.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "process/process.h"
#include "stats/stats.h"
#include "system/log.h"

/* How PyTorch's memory is served, and why. The text may be in `ret_why`. */
static struct spw_setup_mode of_torch(char *ret_why, size_t capacity)
{
    const struct spw_process_torch *torch = &spw_process.torch;

    switch (atomic_load(&torch->state)) {
    case SPW_TORCH_TENSORS:
        (void)snprintf(ret_why, capacity, "the pool serves each tensor of PyTorch %s",
                       torch->version);
        return (struct spw_setup_mode){"tensor", ret_why, true};
    case SPW_TORCH_SEGMENTS:
        (void)snprintf(ret_why, capacity,
                       "PyTorch %s: %s; its cache serves tensors, the pool serves its segments; "
                       "unavailable: per-tensor placement",
                       torch->version, torch->why != NULL ? torch->why : "as asked for");
        return (struct spw_setup_mode){"segment", ret_why, true};
    case SPW_TORCH_ASYNC:
        return (struct spw_setup_mode){"tensor", "the user chose cudaMallocAsync for PyTorch",
                                       true};
    case SPW_TORCH_FOREIGN:
        return (struct spw_setup_mode){"auto",
                                       "the user chose an allocator for PyTorch: what it calls is "
                                       "served",
                                       true};
    default:
        return (struct spw_setup_mode){
            "auto", "PyTorch is not in use: all allocation calls are served", false};
    }
}

struct spw_setup_mode spw_setup_mode_of(enum spw_mode mode, char *ret_why, size_t capacity)
{
    switch (mode) {
    case SPW_MODE_OBSERVE:
        return (struct spw_setup_mode){
            "observe", "SPILLWAY_MODE=observe; limits and accounting only; the driver allocates",
            true};
    case SPW_MODE_SEGMENT:
        return (struct spw_setup_mode){
            "segment", "SPILLWAY_MODE=segment; unavailable: per-tensor placement", true};
    default:
        return of_torch(ret_why, capacity);
    }
}

static void say(const struct spw_setup_mode *text)
{
    struct spw_stats *stats = spw_process_stats();

    (void)snprintf(stats->mode, sizeof(stats->mode), "%s", text->name);
    (void)snprintf(stats->why, sizeof(stats->why), "%s", text->why);
    if (text->said) {
        spw_log_always("mode %s (%s)", text->name, text->why);
    } else {
        spw_log(SPW_LOG_INFO, "mode %s (%s)", text->name, text->why);
    }
}

void spw_setup_mode_announce(void)
{
    char why[SPW_SETUP_MODE_WHY];
    struct spw_setup_mode text;

    if (!atomic_exchange(&spw_process.mode_said, true)) {
        text = spw_setup_mode_of(spw_process_settings()->mode, why, sizeof(why));
        say(&text);
    }
}

void spw_setup_mode_note(void)
{
    char why[SPW_SETUP_MODE_WHY];
    struct spw_setup_mode text;

    if (atomic_load(&spw_process.mode_said)) {
        text = spw_setup_mode_of(spw_process_settings()->mode, why, sizeof(why));
        if (strncmp(text.why, spw_process_stats()->why, sizeof(spw_process_stats()->why) - 1) !=
            0) {
            say(&text);
        }
    }
}
