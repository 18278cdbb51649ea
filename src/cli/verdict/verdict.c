#include "cli/verdict/outputs.h"
#include "common/options.h"

#include "cli/console/messages.h"
#include "cli/verdict/need.h"
#include "cli/verdict/step.h"
#include "gpu/rate.h"

#include <inttypes.h>
#include <stdio.h>

enum { SHARERS = 8 }; /* processes that a line names */

static void say(const struct spw_cli_line *line)
{
    fprintf(stderr, "spillway:   %s\n", line->text);
}

/* ---- the memory of a process ---- */

static void say_device(const struct spw_cli_sim_result *result,
                       const struct spw_cli_sim_device *device)
{
    int ordinal;
    const struct spw_cli_sim_process *process = spw_cli_sim_process_of(result, device, &ordinal);
    struct spw_cli_line line = {""};

    spw_cli_line_add(&line, "%s (pid %d", process->name, process->pid);
    if (process->rank >= 0) {
        spw_cli_line_add(&line, ", rank %" PRId64, process->rank);
    }
    spw_cli_line_add(&line, ") on device %d (%s): peak live %s", ordinal,
                     spw_cli_size(device->total_bytes), spw_cli_size(device->live_peak_bytes));
    if (!device->pooled) {
        spw_cli_line_add(&line, " (with the cache of the program's own allocator)");
    } else if (device->ordered_peak_bytes > 0) {
        spw_cli_line_add(&line, " (%s: up to %s)",
                         process->tensors ? "PyTorch's tensors" : "allocated in stream order",
                         spw_cli_size(device->ordered_peak_bytes));
    }
    spw_cli_line_add(&line, "; peak device memory %s", spw_cli_size(device->used_peak_bytes));
    if (device->own_peak_bytes > 0) {
        spw_cli_line_add(&line, " (the driver's code, local memory and graphs: up to %s)",
                         spw_cli_size(device->own_peak_bytes));
    }
    say(&line);
}

/* Adds "560 MiB to 740 MiB", or one size if both are equal. */
static void add_term(struct spw_cli_line *line, const struct spw_cli_need_term *term)
{
    spw_cli_line_add(line, "%s", spw_cli_size(term->bytes));
    if (term->most > term->bytes) {
        spw_cli_line_add(line, " to %s", spw_cli_size(term->most));
    }
}

/* Adds the source of the figures for the context and the buffers of NCCL. */
static void add_basis(struct spw_cli_line *line, const struct spw_cli_sim_device *device,
                      const struct spw_cli_need *need)
{
    bool guess =
        need->terms[SPW_CLI_TERM_CONTEXT].basis == SPW_CLI_GUESS ||
        (device->communicators > 0 && need->terms[SPW_CLI_TERM_NCCL].basis == SPW_CLI_GUESS);

    spw_cli_line_add(line, " (from published figures%s)", guess ? ", in part of other GPUs" : "");
}

static void add_refused(struct spw_cli_line *line, const struct spw_cli_sim_device *device)
{
    if (device->lost == 1) {
        spw_cli_line_add(line, "; the refused %s are not counted",
                         spw_cli_size(device->last.bytes));
    } else {
        spw_cli_line_add(
            line, "; the %" PRIu64 " requests that were refused, the last of %s, are not counted",
            device->lost, spw_cli_size(device->last.bytes));
    }
}

/* Adds the part of one memory for the host's side of the process, and names the parts that are not
 * counted. */
static void add_host_side(struct spw_cli_line *line, const struct spw_cli_sim_device *device,
                          const struct spw_cli_need_term *term)
{
    uint64_t reserve = spw_cli_cards_reserve(spw_cli_cards_profile(), device->memory_bytes);

    spw_cli_line_add(line, ", and %s for the host's side of the process, as measured here",
                     spw_cli_size(term->bytes));
    spw_cli_line_add(line,
                     "; the system, other programs and processes without CUDA are not counted: %s "
                     "are kept for them",
                     spw_cli_size(reserve));
}

/* Prints the need on a card of the simulated kind. `ended` is true if the program succeeded; its
 * need is then known. If requests were lost, the need is a lower bound. */
static void say_need(const struct spw_cli_sim_device *device, bool ended)
{
    struct spw_cli_need need = spw_cli_need_here(device);
    bool at_least = need.without_spilling || (ended && device->lost > 0);
    struct spw_cli_line line = {""};
    struct spw_cli_cards cards;

    spw_cli_need_cards_of(device, &cards);
    if (ended) {
        spw_cli_line_add(&line, "%s", need.without_spilling ? "to run without spilling, " : "");
        spw_cli_cards_name(&line, &cards);
        spw_cli_line_add(&line, " needs %sabout ", at_least ? "at least " : "");
    } else {
        spw_cli_line_add(&line, "until it failed, it would have taken %sof ",
                         need.without_spilling ? "without spilling " : "");
        spw_cli_cards_name(&line, &cards);
        spw_cli_line_add(&line, " about ");
    }
    spw_cli_line_add(&line, "%s", spw_cli_size(need.in_all));
    if (!ended || device->lost == 0) {
        spw_cli_line_add(&line, ", at most %s", spw_cli_size(need.in_all_most));
    }
    spw_cli_line_add(&line, ": ");
    add_term(&line, &need.terms[SPW_CLI_TERM_PROGRAM]);
    spw_cli_line_add(&line, " for the program, ");
    add_term(&line, &need.terms[SPW_CLI_TERM_CONTEXT]);
    spw_cli_line_add(&line, " for CUDA context, code and libraries");
    if (device->communicators > 0) {
        spw_cli_line_add(&line, ", ");
        add_term(&line, &need.terms[SPW_CLI_TERM_NCCL]);
        spw_cli_line_add(&line, " for NCCL (%" PRIu64 " communicator%s)", device->communicators,
                         device->communicators == 1 ? "" : "s");
    }
    add_basis(&line, device, &need);
    if (need.terms[SPW_CLI_TERM_HOST].bytes > 0) {
        add_host_side(&line, device, &need.terms[SPW_CLI_TERM_HOST]);
    }
    if (ended && device->lost > 0) {
        add_refused(&line, device);
    }
    if (cards.count == 0 && device->overhead_bytes == 0 && !device->spilled) {
        spw_cli_line_add(&line, "; the verdict counts the program alone, as no card has about %s",
                         spw_cli_size(device->memory_bytes));
    }
    say(&line);
}

/* The speeds of the card's link, in GB/s. */
static struct spw_gpu_link link_speed(void)
{
    return spw_gpu_link_most(spw_cli_cards_profile());
}

static void add_link(struct spw_cli_line *line)
{
    struct spw_gpu_link link = link_speed();

    if (link.in == link.out) {
        spw_cli_line_add(line, "a link of %.0f GB/s in each direction", link.in);
    } else {
        spw_cli_line_add(line, "a link of %.0f GB/s to the card and %.0f GB/s from it", link.in,
                         link.out);
    }
}

/* Prints the cost of memory that rules of the policy placed on the host. */
static void say_placed(const struct spw_cli_sim_device *device)
{
    if (device->placed_peak_bytes == 0) {
        return;
    }
    spw_cli_print(
        stderr,
        "spillway:   %s are on the host because the policy says so, and kernels use them there: a "
        "step that reads all of them once takes at least %.2g s for that, on a link of %.0f GB/s\n",
        spw_cli_size(device->placed_peak_bytes),
        spw_cli_cards_link_seconds(device->placed_peak_bytes, 0), link_speed().in);
}

/* Prints the bytes that were transferred over the link, and the least time that the transfer
 * takes. */
static void say_traffic(const struct spw_cli_sim_device *device)
{
    struct spw_cli_line line = {""};

    if (!device->spilled && device->paused_bytes == 0) {
        return;
    }
    spw_cli_line_add(&line, "in the whole run %s went to the host",
                     spw_cli_size(device->spilled_bytes));
    if (device->paused_bytes > 0 && device->paused_bytes >= device->spilled_bytes) {
        spw_cli_line_add(&line, ", as the program was paused,");
    } else if (device->paused_bytes > 0) {
        spw_cli_line_add(&line, " (%s of it as the program was paused)",
                         spw_cli_size(device->paused_bytes));
    }
    spw_cli_line_add(&line, " and %s came back: at least %.2g s on ",
                     spw_cli_size(device->promoted_bytes),
                     spw_cli_cards_link_seconds(device->promoted_bytes, device->spilled_bytes));
    add_link(&line);
    if (device->step_out_bytes + device->step_in_bytes > 0) {
        spw_cli_line_add(&line, "; in one step %s and %s: at least %.2g s",
                         spw_cli_size(device->step_out_bytes), spw_cli_size(device->step_in_bytes),
                         spw_cli_cards_link_seconds(device->step_in_bytes, device->step_out_bytes));
    }
    say(&line);
}

struct work {
    uint64_t launches[SPW_LAYOUT_COUNT];
    uint64_t small_reads, known_reads, bulk_reads, bulk_read_bytes, chosen;
    uint64_t engines_guessed, searches;
};

static struct work sum_work(const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = NULL;
    struct work work = {.small_reads = 0};

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        for (int layout = 0; layout < SPW_LAYOUT_COUNT; layout++) {
            work.launches[layout] += device->launches[layout];
        }
        work.small_reads += device->small_reads;
        work.known_reads += device->known_reads;
        work.chosen += device->chosen;
        work.engines_guessed += device->engines_guessed;
        work.searches += device->searches;
        work.bulk_reads += device->bulk_reads;
        work.bulk_read_bytes += device->bulk_read_bytes;
    }
    return work;
}

static void say_launches(const struct work *work)
{
    uint64_t unknown = work->launches[SPW_LAYOUT_UNKNOWN];
    uint64_t structs = work->launches[SPW_LAYOUT_STRUCTS];
    uint64_t all = 0, checked;
    struct spw_cli_line line = {""};

    for (int layout = 0; layout < SPW_LAYOUT_COUNT; layout++) {
        all += work->launches[layout];
    }
    if (all == 0) {
        return;
    }
    checked = all - unknown - structs;
    spw_cli_line_add(&line,
                     "%" PRIu64 ".%" PRIu64 " %% of kernel launches (%" PRIu64 " of %" PRIu64
                     ") were checked for use of freed memory",
                     checked * 100 / all, checked * 1000 / all % 10, checked, all);
    if (unknown + structs > 0) {
        spw_cli_line_add(&line, "; not checked: ");
    }
    if (unknown > 0) {
        spw_cli_line_add(&line, "%" PRIu64 " whose arguments are not known%s", unknown,
                         structs > 0 ? ", " : "");
    }
    if (structs > 0) {
        spw_cli_line_add(&line, "%" PRIu64 " whose addresses are in structs", structs);
    }
    say(&line);
}

static void say_reads(const struct work *work)
{
    int choice = spw_option_get(SPW_OPT_SPILLWAY_SIM_UNKNOWN, NULL, 0).word;

    if (work->small_reads > work->known_reads) {
        spw_cli_print(stderr,
                      "spillway:   of %" PRIu64
                      " GPU result%s of 4 KiB or less that the program read, %" PRIu64
                      " may not have been computed here (often 0); if tensor sizes depend on them, "
                      "memory differs on a real GPU\n",
                      work->small_reads, work->small_reads == 1 ? "" : "s",
                      work->small_reads - work->known_reads);
    }
    if (work->chosen > 0) {
        spw_cli_print(stderr,
                      "spillway:   %" PRIu64
                      " kernel%s that count or select elements (nonzero, masks, unique) had input "
                      "that is not computed here: their results are as --unknown %s says\n",
                      work->chosen, work->chosen == 1 ? "" : "s",
                      spw_option_words(SPW_TYPE_UNKNOWN)[choice]);
    }
    if (work->bulk_reads > 0) {
        spw_cli_print(stderr,
                      "spillway:   the program read %" PRIu64
                      " larger GPU result%s (%s in total) not computed here\n",
                      work->bulk_reads, work->bulk_reads == 1 ? "" : "s",
                      spw_cli_size(work->bulk_read_bytes));
    }
}

static void say_engines(const struct work *work)
{
    if (work->engines_guessed > 0) {
        spw_cli_print(stderr,
                      "spillway:   the workspace%s of %" PRIu64
                      " graph%s of cuDNN %s guessed, as cuDNN (9.8 or later) gave no answer\n",
                      work->engines_guessed == 1 ? "" : "s", work->engines_guessed,
                      work->engines_guessed == 1 ? "" : "s",
                      work->engines_guessed == 1 ? "is" : "are");
    }
    if (work->searches > 0) {
        spw_cli_print(stderr,
                      "spillway:   cudnn.benchmark tries all engines of %" PRIu64
                      " graph%s: on a GPU this may take more memory than cuDNN says here (24 %% of "
                      "the peak of a small network on an H100)\n",
                      work->searches, work->searches == 1 ? "" : "s");
    }
}

static void say_overcome(uint64_t count)
{
    if (count > 0) {
        spw_cli_print(stderr,
                      "spillway:   %" PRIu64
                      " request%s failed with out of memory and succeeded when repeated\n",
                      count, count == 1 ? "" : "s");
    }
}

/* Prints the memory that several processes held together on a device, and the part of each
 * process. */
static void say_sharers(const struct spw_cli_sim_result *result, int index)
{
    struct spw_cli_need need = spw_cli_need_of_sharers(result, index);
    size_t count = spw_cli_sim_result_sharers(result, index), said = 0;
    const struct spw_cli_sim_device *device = NULL;
    int ordinal;
    struct spw_cli_line line = {""};
    struct spw_cli_cards cards;

    spw_cli_need_cards(result, &cards);
    spw_cli_line_add(&line,
                     "%zu processes shared device %d and held up to %s of it at a time: ", count,
                     index, spw_cli_size(result->shared_peaks[index]));
    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        if (device->index == index && device->shared_peak_bytes > 0 && said < SHARERS) {
            spw_cli_line_add(&line, "%spid %d %s", said++ > 0 ? ", " : "",
                             spw_cli_sim_process_of(result, device, &ordinal)->pid,
                             spw_cli_size(device->shared_peak_bytes));
        }
    }
    spw_cli_line_add(&line, "%s; ", said < count ? ", ..." : "");
    spw_cli_cards_name(&line, &cards);
    spw_cli_line_add(&line, " needs about %s for them, at most %s", spw_cli_size(need.in_all),
                     spw_cli_size(need.in_all_most));
    say(&line);
}

void spw_cli_verdict_shared(const struct spw_cli_sim_result *result)
{
    for (int index = 0; index < SPW_DEVICES_MAX; index++) {
        if (spw_cli_sim_result_sharers(result, index) > 1) {
            say_sharers(result, index);
        }
    }
}

/* ---- all ---- */

static void say_process(const struct spw_cli_sim_result *result,
                        const struct spw_cli_sim_device *device, int code)
{
    say_device(result, device);
    say_placed(device);
    say_traffic(device);
    say_need(device, code == 0);
}

static void say_each(const struct spw_cli_sim_result *result, int code)
{
    const struct spw_cli_sim_device *device = NULL;

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        if (device->used) {
            say_process(result, device, code);
        }
    }
}

/* The time of a step of each device. */
static void say_steps(const struct spw_cli_sim_result *result)
{
    const struct spw_gpu_profile *card = spw_cli_cards_profile();
    const struct spw_cli_sim_device *device = NULL;

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        struct spw_cli_range time = spw_cli_step_time(device, card, card);
        struct spw_cli_line line = {""};

        if (time.most <= 0) {
            continue;
        }
        spw_cli_line_add(&line, "a step with ample memory takes about %s on a %s",
                         spw_cli_step_time_text(time), card->id);
        spw_cli_line_add(&line,
                         " (roofline of %" PRIu64 " kernels; the shapes of %.0f %% are known)",
                         device->step.launches,
                         100.0 * (double)device->step.sure_ns / (double)device->step.busy_ns);
        say(&line);
    }
}

void spw_cli_verdict_print(const struct spw_cli_sim_result *result, int code, bool verbose)
{
    struct work work = sum_work(result);

    spw_cli_brief_print(result, code, verbose);
    if (!verbose || spw_cli_need_tightest(result) == NULL) {
        return;
    }
    say_each(result, code);
    if (result->left_out > 0) {
        spw_cli_print(stderr, "spillway:   %zu more processes are not counted\n", result->left_out);
    }
    spw_cli_verdict_shared(result);
    say_steps(result);
    say_launches(&work);
    say_overcome(result->overcome);
    say_reads(&work);
    say_engines(&work);
}
