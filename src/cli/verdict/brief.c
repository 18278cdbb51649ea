#include "cli/verdict/outputs.h"

#include "callsite/label.h"
#include "callsite/top_sites.h"
#include "cli/console/messages.h"
#include "cli/inspect/call_sites.h"
#include "cli/launch/child.h"
#include "cli/verdict/need.h"
#include "cli/verdict/step.h"
#include "common/host_bound.h"
#include "common/minmax.h"
#include "common/options.h"
#include "system/fd.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 80, LEAST_LABEL = 16 };

struct brief {
    const struct spw_cli_sim_result *result;
    int code;
    enum spw_cli_sim_outcome outcome;
    const struct spw_cli_sim_device *device; /* the subject of the lines; NULL: none was used */
    bool fits;                               /* on all cards */
    struct spw_cli_cards cards;
};

/* ---- lines of limited width ---- */

/* Returns the number of characters of a text. */
static int width(const char *text)
{
    int count = 0;

    for (; *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return count;
}

/* Adds a text if the line has room for all of it. Returns false if it has not. */
static bool add_if_room(struct spw_cli_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool add_if_room(struct spw_cli_line *line, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (width(line->text) + width(text) > COLUMNS) {
        return false;
    }
    spw_cli_line_add(line, "%s", text);
    return true;
}

/* Cuts a text to at most `most` characters, the last of them "...". If `ends` is not NULL, cuts at
 * the last of these separators instead, if there is one. */
static void cut(char *text, int most, const char *const *ends)
{
    size_t at = 0, best = 0;
    int count = 0;

    if (width(text) <= most) {
        return;
    }
    for (; text[at] != '\0' && count <= most; at++) {
        for (int i = 0; ends != NULL && ends[i] != NULL; i++) {
            best = strncmp(text + at, ends[i], strlen(ends[i])) == 0 ? at : best;
        }
        count += ((unsigned char)text[at + 1] & 0xc0) != 0x80;
    }
    if (best > 0) {
        text[best] = '\0';
        return;
    }
    for (at = 0, count = 0; count < most - 3; at++) {
        count += ((unsigned char)text[at + 1] & 0xc0) != 0x80;
    }
    strcpy(text + at, "...");
}

/* Returns a time in a unit that suits it. The text is valid until the next call. */
static const char *time_text(double seconds)
{
    static char text[32];

    if (seconds >= 99.5) {
        (void)snprintf(text, sizeof(text), "%.0f s", seconds);
    } else if (seconds >= 0.0995) {
        (void)snprintf(text, sizeof(text), "%.2g s", seconds);
    } else {
        (void)snprintf(text, sizeof(text), seconds >= 0.995e-4 ? "%.2g ms" : "%.2g us",
                       seconds * (seconds >= 0.995e-4 ? 1e3 : 1e6));
    }
    return text;
}

/* ---- the first line: does it fit, on what, what is missing ---- */

/* The first word of the verdict, in colour on a terminal. */
struct word {
    const char *text;
    enum { GREEN = 32, YELLOW = 33, RED = 31 } colour;
};

static struct word word_of(const struct brief *brief)
{
    switch (brief->outcome) {
    case SPW_CLI_SIM_FITS:
        return brief->fits ? (struct word){"fits", GREEN}
                           : (struct word){"fits too tightly", YELLOW};
    case SPW_CLI_SIM_SPILLS:
        return (struct word){"does not fit", YELLOW};
    case SPW_CLI_SIM_DOES_NOT_FIT:
        return (struct word){"does not fit", RED};
    case SPW_CLI_SIM_CONTINUED:
        return (struct word){"ended well", YELLOW};
    case SPW_CLI_SIM_UNUSED:
    case SPW_CLI_SIM_UNRECORDED:
    case SPW_CLI_SIM_FAILED:
        break;
    }
    return (struct word){"none", brief->code != 0 ? RED : YELLOW};
}

static uint64_t placed_bytes(const struct spw_cli_sim_result *result)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < result->rule_count; i++) {
        bytes += result->rules[i].host_peak_bytes;
    }
    return bytes;
}

static void add_fit(struct spw_cli_line *line, const struct brief *brief)
{
    const struct spw_cli_sim_result *result = brief->result;
    struct spw_cli_need need = spw_cli_need_here(brief->device);
    bool alone = brief->cards.count == 0 && brief->device->overhead_bytes == 0;

    if (!brief->fits && brief->cards.by_size) {
        spw_cli_line_add(line, ": surely on %zu of %zu such cards",
                         spw_cli_need_fitting(result, &brief->cards), brief->cards.count);
    } else if (!brief->fits) {
        spw_cli_line_add(line, ": it needs up to %s", spw_cli_size(need.in_all_most));
    } else if (result->rule_count > 0) {
        spw_cli_line_add(line, ", with %s on the host by ", spw_cli_size(placed_bytes(result)));
        if (result->rule_count > 1 || !add_if_room(line, "rule \"%s\"", result->rules[0].name)) {
            spw_cli_line_add(line, "the policy");
        }
    } else {
        spw_cli_line_add(line, ", %s to spare", spw_cli_size(need.spare));
        if (alone) {
            spw_cli_line_add(line, " (program alone)");
        } else if (brief->cards.count > 0) {
            (void)(brief->cards.by_size && add_if_room(line, " on each such card"));
            (void)add_if_room(line, "; needs at most %s", spw_cli_size(need.in_all_most));
        }
    }
}

static void add_lack(struct spw_cli_line *line, const struct spw_cli_sim_refusal *refusal)
{
    const char *bound = refusal->at_least ? "at least " : "";

    if (refusal->lack == SPW_CLI_SIM_LACK_NOTHING) {
        spw_cli_line_add(line, ": refused, but not for lack of it");
    } else if (refusal->lack == SPW_CLI_SIM_LACK_HOST) {
        spw_cli_line_add(line, ": %s of locked host memory missing",
                         spw_cli_size(refusal->missing_bytes));
    } else if (refusal->lack == SPW_CLI_SIM_LACK_MACHINE) {
        spw_cli_line_add(line, ": a real machine would hang, %s missing",
                         spw_cli_size(refusal->missing_bytes));
    } else if (refusal->missing_bytes == 0) {
        spw_cli_line_add(line, ": %s are free, but in pieces", spw_cli_size(refusal->bytes));
    } else {
        spw_cli_line_add(line, ": %s%s missing", bound, spw_cli_size(refusal->missing_bytes));
        (void)add_if_room(line, " for %s", spw_cli_size(refusal->bytes));
    }
}

static void add_none(struct spw_cli_line *line, const struct brief *brief)
{
    bool unused = brief->outcome == SPW_CLI_SIM_UNUSED;

    spw_cli_line_add(line, ": ");
    if (brief->outcome == SPW_CLI_SIM_UNRECORDED) {
        spw_cli_line_add(line, "the memory of %zu process%s is not known", brief->result->lost,
                         brief->result->lost == 1 ? "" : "es");
    } else if (unused && brief->code == 0) {
        spw_cli_line_add(line, "no process is known to have used a simulated device");
    } else if (brief->code == SPW_CLI_EXIT_SIGNAL + SIGINT) {
        spw_cli_line_add(line, unused ? "interrupted before a simulated device was used"
                                      : "interrupted; the figures are of the part that ran");
    } else {
        spw_cli_line_add(line, "failed (exit code %d", brief->code);
        if (brief->code > SPW_CLI_EXIT_SIGNAL && brief->code < SPW_CLI_EXIT_SIGNAL + 65) {
            spw_cli_line_add(line, ", signal %d", brief->code - SPW_CLI_EXIT_SIGNAL);
        }
        spw_cli_line_add(line, unused                ? ") before it used a device"
                               : brief->result->real ? "), and spillway refused nothing"
                                                     : "), not out of memory");
    }
}

static bool lacks_host(const struct brief *brief)
{
    return brief->outcome == SPW_CLI_SIM_DOES_NOT_FIT &&
           brief->device->last.lack == SPW_CLI_SIM_LACK_HOST;
}

static void print_verdict(const struct brief *brief)
{
    struct word word = word_of(brief);
    struct spw_cli_line line = {""};
    bool colour = spw_cli_has_colour(STDERR_FILENO);
    size_t begin, end;

    spw_cli_line_add(&line, "spillway: verdict: ");
    begin = strlen(line.text);
    spw_cli_line_add(&line, "%s", word.text);
    end = strlen(line.text);
    if (*word.text != 'n' && !lacks_host(brief)) {
        spw_cli_line_add(&line, " in %s", spw_cli_size(brief->device->total_bytes));
    }
    switch (brief->outcome) {
    case SPW_CLI_SIM_FITS:
        add_fit(&line, brief);
        break;
    case SPW_CLI_SIM_SPILLS:
        spw_cli_line_add(&line,
                         brief->result->rule_count > 0 ? "; runs with %s on the host"
                                                       : ", but runs by spilling %s",
                         spw_cli_size(brief->result->host_peak_bytes));
        break;
    case SPW_CLI_SIM_CONTINUED:
        spw_cli_line_add(&line, ", but not with all that it asked for");
        break;
    case SPW_CLI_SIM_DOES_NOT_FIT:
        add_lack(&line, &brief->device->last);
        break;
    case SPW_CLI_SIM_UNUSED:
    case SPW_CLI_SIM_UNRECORDED:
    case SPW_CLI_SIM_FAILED:
        add_none(&line, brief);
        break;
    }
    if (colour) {
        fprintf(stderr, "%.*s\033[1;%dm%.*s\033[0m%s\n", (int)begin, line.text, (int)word.colour,
                (int)(end - begin), line.text + begin, line.text + end);
    } else {
        fprintf(stderr, "%s\n", line.text);
    }
}

/* ---- the second line: what held the peak ---- */

/* Writes the label of the call site that held most at the peak, and returns its bytes; 0: not
 * known. */
static uint64_t find_holder(const struct brief *brief, char label[SPW_CALLSITE_LABEL])
{
    int ordinal;
    const struct spw_cli_sim_process *process =
        spw_cli_sim_process_of(brief->result, brief->device, &ordinal);
    int fd = process->sites[0] != '\0' ? spw_fd_open_regular(process->sites) : -1;
    struct spw_callsite_shm *share = fd >= 0 ? spw_cli_call_sites_read(fd) : NULL;
    uint64_t most = 0;

    if (share != NULL && (uint32_t)ordinal < share->devices) {
        struct spw_charges *charges = &share->charges[ordinal];
        uint32_t last = spw_pool_charges_last(charges, atomic_load(&share->count)), site = 0;

        for (uint32_t i = 0; i <= last; i++) {
            uint64_t bytes = spw_pool_charge_at_peak(charges, &charges->sites[i]);

            site = bytes > most ? i : site;
            most = spw_max(most, bytes);
        }
        spw_callsite_label_of(site, label, SPW_CALLSITE_LABEL);
        most = site > 0 ? most : 0;
    }
    spw_cli_call_sites_close(share);
    if (fd >= 0) {
        close(fd);
    }
    return most;
}

static void add_holder(struct spw_cli_line *line, const struct brief *brief)
{
    static const char *const ends[] = {" via ", ", ", " in ", NULL};
    char label[SPW_CALLSITE_LABEL];
    uint64_t bytes = find_holder(brief, label);
    struct spw_cli_line with = *line;
    int room;

    spw_cli_line_add(&with, "; most: %s by ", spw_cli_size(bytes));
    room = COLUMNS - width(with.text);
    if (bytes > 0 && (room >= LEAST_LABEL || width(label) <= room)) {
        cut(label, room, ends);
        spw_cli_line_add(&with, "%s", label);
        *line = with;
    }
}

/* Sums over all devices. */
struct uses {
    size_t count;      /* of used devices */
    uint64_t chosen;   /* sizes that --unknown decided */
    uint64_t engines;  /* graphs of cuDNN whose workspace is a guess */
    uint64_t searches; /* graphs for which cudnn.benchmark tries all engines */
};

static struct uses count_uses(const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = NULL;
    struct uses uses = {0};

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        uses.count += device->used;
        uses.chosen += device->chosen;
        uses.engines += device->engines_guessed;
        uses.searches += device->searches;
    }
    return uses;
}

/* Adds the conditions of the verdict. */
static void add_conditions(struct spw_cli_line *line, const struct brief *brief,
                           const struct uses *uses)
{
    const struct spw_cli_sim_result *result = brief->result;

    if (brief->device->one_memory && brief->device->host_side_bytes > 0) {
        spw_cli_line_add(line, ", and %s on the host's side",
                         spw_cli_size(brief->device->host_side_bytes));
    }
    if (result->rule_count > 0 && (brief->outcome != SPW_CLI_SIM_FITS || !brief->fits)) {
        spw_cli_line_add(line, ", %s by rules on the host", spw_cli_size(placed_bytes(result)));
    }
    if (brief->outcome == SPW_CLI_SIM_CONTINUED) {
        spw_cli_line_add(line, "; refused: %s", spw_cli_size(brief->device->last.bytes));
        (void)(result->lost_requests > 1 &&
               add_if_room(line, " and %" PRIu64 " more", result->lost_requests - 1));
    }
    if (result->left_out > 0) {
        (void)add_if_room(line, "; %zu processes not counted", result->left_out);
    }
    if (uses->chosen > 0) {
        (void)add_if_room(line, "; sizes as --unknown says");
    }
    if (uses->searches > 0) {
        (void)add_if_room(line, "; cudnn.benchmark may add");
    } else if (uses->engines > 0) {
        (void)add_if_room(line, "; cuDNN's part is a guess");
    }
}

static void print_peak(const struct brief *brief)
{
    const struct spw_cli_sim_result *result = brief->result;
    const struct spw_cli_sim_device *device = brief->device;
    size_t sharers = spw_cli_sim_result_sharers(result, device->index);
    struct uses uses = count_uses(result);
    int ordinal;
    const struct spw_cli_sim_process *process = spw_cli_sim_process_of(result, device, &ordinal);
    struct spw_cli_line line = {""};

    spw_cli_line_add(&line, "spillway:   peak: ");
    if (sharers > 1) {
        spw_cli_line_add(&line, "%s in %zu processes",
                         spw_cli_size(result->shared_peaks[device->index]), sharers);
    } else {
        spw_cli_line_add(&line, "%s live%s", spw_cli_size(device->live_peak_bytes),
                         device->pooled || device->live_peak_bytes == 0 ? ""
                                                                        : ", its cache included");
        if (process->rank >= 0) {
            spw_cli_line_add(&line, " (rank %" PRId64 ", device %d)", process->rank, ordinal);
        } else if (uses.count > 1) {
            spw_cli_line_add(&line, " (pid %d, device %d)", process->pid, ordinal);
        }
    }
    add_conditions(&line, brief, &uses);
    add_holder(&line, brief);
    fprintf(stderr, "%s\n", line.text);
}

static void add_reason(struct spw_cli_line *line, const struct brief *brief)
{
    const char *runtime = "";

    for (size_t i = 0; i < brief->result->count; i++) {
        runtime = *runtime == '\0' ? brief->result->processes[i].runtime : runtime;
    }
    if (brief->outcome == SPW_CLI_SIM_UNRECORDED) {
        spw_cli_line_add(line, "%s", brief->result->problem);
    } else if (*runtime != '\0') {
        spw_cli_line_add(line, "only NVIDIA's driver serves NVIDIA's CUDA runtime in %s", runtime);
    } else if (*spw_cli_launch_lack() != '\0') {
        spw_cli_line_add(line, "%s", spw_cli_launch_lack());
    } else {
        spw_cli_line_add(line, brief->result->count > 0
                                   ? "CUDA was initialised, but nothing was allocated or launched"
                                   : "no process is known to have initialised CUDA");
    }
}

/* Prints the reason why there is no verdict, on at most two lines. Returns the number of lines. */
static int print_reason(const struct brief *brief)
{
    struct spw_cli_line reason = {""};
    char *rest = reason.text;
    int lines = 0;

    add_reason(&reason, brief);
    while (*rest != '\0' && lines < 2) {
        const char *begin = lines++ == 0 ? "spillway:   why: " : "spillway:        ";
        int room = COLUMNS - width(begin), length = 0;

        if (width(rest) > room && lines == 1) {
            for (length = room; length > 0 && rest[length] != ' '; length--) {
            }
        }
        if (length == 0) {
            cut(rest, room, NULL);
            length = (int)strlen(rest);
        }
        fprintf(stderr, "%s%.*s\n", begin, length, rest);
        rest += length;
        rest += *rest == ' ';
    }
    return lines;
}

/* ---- the third line: what to do next ---- */

/* Returns the most bytes that one of the cards may lack. */
static uint64_t lack_of_cards(const struct brief *brief)
{
    uint64_t most = 0;

    for (size_t i = 0; i < brief->cards.count; i++) {
        uint64_t need = spw_cli_need_of(brief->device, brief->cards.list[i]).in_all_most;
        uint64_t room = spw_cli_cards_room(&brief->cards, i);

        most = spw_max(most, need > room ? need - room : 0);
    }
    return most;
}

static void add_after_fit(struct spw_cli_line *line, const struct brief *brief)
{
    uint64_t placed = placed_bytes(brief->result), lack = lack_of_cards(brief);
    const char *least = time_text(spw_cli_cards_link_seconds(placed, 0));

    if (!brief->fits) {
        spw_cli_line_add(line, "%s",
                         brief->cards.by_size ? "--profile NAME asks about your card"
                                              : "a larger card, or a smaller batch");
        if (brief->device->pooled && lack > 0) {
            (void)add_if_room(line, "; %s may spill", spw_cli_size(lack));
        }
    } else if (placed > 0 && spw_cli_need_fits_unplaced(brief->result)) {
        spw_cli_line_add(line, "drop the policy: it fits too, and saves at least %s a read", least);
    } else if (placed > 0) {
        spw_cli_line_add(line, "nothing; to read those %s once costs at least %s",
                         spw_cli_size(placed), least);
    } else {
        spw_cli_line_add(line, "nothing is missing; spillway fit tells which cards it fits on");
    }
}

/* The time of a step that moves took, where it is known. */
static void add_after_spill(struct spw_cli_line *line, const struct brief *brief)
{
    const struct spw_cli_sim_device *device = brief->device;
    uint64_t step = spw_max(device->step_out_bytes, device->step_in_bytes);
    uint64_t whole = spw_max(device->spilled_bytes, device->promoted_bytes);
    const struct spw_gpu_profile *card = spw_cli_cards_profile();
    struct spw_cli_range slowdown = spw_cli_step_slowdown(
        spw_cli_step_time(device, card, card), card, device->step_out_bytes, device->step_in_bytes);

    if (brief->result->real && device->step_ns > 0) {
        spw_cli_line_add(line, "moves delay a step by %s",
                         time_text((double)device->step_held_ns / 1e9));
        spw_cli_line_add(line, " of %s; ", time_text((double)device->step_ns / 1e9));
    } else if (brief->result->real) {
        spw_cli_line_add(line, "%s moved in the whole run; ", spw_cli_size(whole));
    } else if (slowdown.most > 0) {
        spw_cli_line_add(line, "a step: %s; ", spw_cli_step_slowdown_text(slowdown));
    } else if (step > 0) {
        spw_cli_line_add(
            line, "it costs at least %s a step; ",
            time_text(spw_cli_cards_link_seconds(device->step_in_bytes, device->step_out_bytes)));
    } else if (whole > 0) {
        spw_cli_line_add(
            line, "it costs at least %s in all; ",
            time_text(spw_cli_cards_link_seconds(device->promoted_bytes, device->spilled_bytes)));
    } else {
        spw_cli_line_add(line, "kernels use it there; ");
    }
    spw_cli_line_add(line, "spillway advise may cut that");
}

/* Returns the limit of host memory if the refused request would exceed it; 0: it would not. */
static uint64_t exceeded_host_limit(const struct spw_cli_sim_device *device)
{
    struct spw_option_value option = spw_option_get(SPW_OPT_SPILLWAY_HOST_LIMIT, NULL, 0);
    uint64_t limit = device->host_limit_bytes; /* set by the first use */

    limit = limit == 0 && option.set && !option.percent ? option.bytes : limit;
    return device->host_peak_bytes + device->last.bytes > limit ? limit : 0;
}

/* Where device and host share one memory, nothing can spill. */
static void add_after_one_memory(struct spw_cli_line *line, const struct spw_cli_sim_device *device)
{
    if (!device->pooled) {
        spw_cli_line_add(line, "without --no-pool, such a request is refused instead");
    } else if (device->last.lack == SPW_CLI_SIM_LACK_MACHINE) {
        spw_cli_line_add(line, "a larger --memory-reserve: the memory of the host grew into it");
    } else {
        spw_cli_line_add(line, "a smaller batch: device and host share one memory");
    }
}

/* A larger limit helps if it was an option's, or the default share of the machine's memory. */
static void add_after_host_limit(struct spw_cli_line *line, const struct spw_cli_sim_device *device)
{
    const char *most = spw_cli_size(exceeded_host_limit(device));

    if (device->host_bound <= SPW_HOST_BOUND_MACHINE) {
        spw_cli_line_add(line, "a --host-limit above %s, if the host has it", most);
    } else {
        spw_cli_line_add(line, "a smaller batch: on the host, %s allows %s",
                         spw_host_bound_text(device->host_bound), most);
    }
}

static void add_after_refusal(struct spw_cli_line *line, const struct brief *brief)
{
    const struct spw_cli_sim_device *device = brief->device;
    const struct spw_cli_sim_refusal *last = &device->last;
    bool off = spw_option_get(SPW_OPT_SPILLWAY_SPILL, NULL, 0).word == SPW_SPILL_OFF;

    if (last->lack == SPW_CLI_SIM_LACK_NOTHING) {
        spw_cli_line_add(line, "--fail injected it, or the address space was used up");
    } else if (last->lack == SPW_CLI_SIM_LACK_HOST) {
        spw_cli_line_add(line, "--host-memory with %s more, if your machine has it",
                         spw_cli_size(last->missing_bytes));
    } else if (device->one_memory) {
        add_after_one_memory(line, device);
    } else if (!device->pooled || off) {
        spw_cli_line_add(line, "without --%s, %s%s can go to the host",
                         off ? "spill off" : "no-pool", last->missing_bytes > 0 ? "at least " : "",
                         last->missing_bytes > 0 ? spw_cli_size(last->missing_bytes)
                                                 : "the missing memory");
    } else if (exceeded_host_limit(device) > 0) {
        add_after_host_limit(line, device);
    } else {
        spw_cli_line_add(line, "spillway sim --compare finds the size that it needs");
    }
}

static void print_next(const struct brief *brief)
{
    struct spw_cli_line line = {""};

    spw_cli_line_add(&line, "spillway:   next: ");
    switch (brief->outcome) {
    case SPW_CLI_SIM_FITS:
        add_after_fit(&line, brief);
        break;
    case SPW_CLI_SIM_SPILLS:
        add_after_spill(&line, brief);
        break;
    case SPW_CLI_SIM_CONTINUED:
    case SPW_CLI_SIM_DOES_NOT_FIT:
        add_after_refusal(&line, brief);
        break;
    case SPW_CLI_SIM_UNRECORDED:
        spw_cli_line_add(&line, "remove this cause, and run it again");
        break;
    case SPW_CLI_SIM_UNUSED:
    case SPW_CLI_SIM_FAILED:
        spw_cli_line_add(&line, brief->code == 0 ? "give the program that uses the GPU after --"
                                                 : "read the output of the command itself");
        break;
    }
    fprintf(stderr, "%s\n", line.text);
}

/* ---- all ---- */

void spw_cli_brief_print(const struct spw_cli_sim_result *result, int code, bool in_full)
{
    struct brief brief = {
        .result = result,
        .code = code,
        .outcome = spw_cli_sim_result_outcome(result, code),
        .device = spw_cli_sim_result_failure(result),
        .fits = spw_cli_need_fits(result),
    };

    if (brief.device == NULL) {
        brief.device = spw_cli_need_tightest(result);
    }
    spw_cli_need_cards(result, &brief.cards);
    if (in_full) {
        spw_cli_outcome_print(result, code, "verdict");
    } else {
        print_verdict(&brief);
    }
    if (brief.device != NULL && brief.outcome != SPW_CLI_SIM_UNRECORDED) {
        print_peak(&brief);
    } else if (print_reason(&brief) > 1) {
        return;
    }
    print_next(&brief);
}
