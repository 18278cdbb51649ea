#include "cli/reports/verdict.h"

#include "common/size.h"
#include "cli/console/messages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A sentence that grows; what does not fit is left out. */
struct text {
    char text[1600];
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
    size_t used = strlen(text->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text->text + used, sizeof(text->text) - used, format, arguments);
    va_end(arguments);
}

static void add_size(struct text *text, uint64_t bytes)
{
    char size[SPW_SIZE_TEXT];

    add(text, "%s", spw_size_text(bytes, size));
}

/* One of the lines below the first. */
static void say(const struct text *text)
{
    fprintf(stderr, "spillway:   %s\n", text->text);
}

/* ---- totals ---- */

static uint64_t refusals(const struct spw_cli_sim_result *fit)
{
    uint64_t count = 0;

    for (size_t i = 0; i < fit->count; i++) {
        for (int k = 0; k < fit->processes[i].device_count; k++) {
            count += fit->processes[i].devices[k].refusals;
        }
    }
    return count;
}

/* ---- the first line ---- */

static void add_failure(struct text *text, const struct spw_cli_sim_result *fit)
{
    const struct spw_cli_sim_process *process;
    const struct spw_cli_sim_refusal *refusal;
    int ordinal;

    refusal = spw_cli_sim_result_failure(fit, &process, &ordinal);
    add(text, "does not fit: ");
    if (refusal->number > 0) {
        add(text, "allocation %" PRIu64 " on device %d, ", refusal->number, ordinal);
        add_size(text, refusal->bytes);
        add(text, " by %s", refusal->api);
    } else {
        add(text, "%s on device %d, which needed ", refusal->api, ordinal);
        add_size(text, refusal->bytes);
        add(text, "%s",
            refusal->lack == SPW_CLI_SIM_LACK_DEVICE ? " for code or data of its own" : "");
    }
    add(text, " (thread %s, %d), was refused: ", refusal->thread, refusal->tid);
    if (refusal->lack == SPW_CLI_SIM_LACK_NOTHING) {
        add(text, "not for want of memory, but by an injected failure or for want of addresses");
    } else if (refusal->missing_bytes == 0) {
        add(text, "enough was free, but in pieces that could not be joined");
    } else {
        add(text, "%s", refusal->at_least ? "at least " : "");
        add_size(text, refusal->missing_bytes);
        add(text, " were missing");
        if (refusal->lack == SPW_CLI_SIM_LACK_HOST) {
            add(text, " of the host memory that may be locked (--host-memory)");
        } else {
            add(text, " of ");
            add_size(text, process->devices[ordinal].total_bytes);
        }
    }
}

static void add_refused(struct text *text, const struct spw_cli_sim_result *fit)
{
    uint64_t count = refusals(fit);

    if (count > 0) {
        add(text, "; %" PRIu64 " request%s refused, and the program went on", count,
            count == 1 ? " was" : "s were");
    }
}

static void add_outcome(struct text *text, const struct spw_cli_sim_result *fit, int code)
{
    switch (spw_cli_sim_result_outcome(fit, code)) {
    case SPW_CLI_SIM_UNUSED:
        add(text, "none: no process used a simulated device");
        break;
    case SPW_CLI_SIM_FITS:
        add(text, "fits");
        if (spw_cli_sim_result_host_peak(fit) > 0) {
            add(text, " with ");
            add_size(text, spw_cli_sim_result_host_peak(fit));
            add(text, " on the host");
        }
        add_refused(text, fit);
        break;
    case SPW_CLI_SIM_DOES_NOT_FIT:
        add_failure(text, fit);
        break;
    case SPW_CLI_SIM_FAILED:
        add(text, "none: the command failed (exit code %d", code);
        if (code > SPW_CLI_EXIT_SIGNAL && code < SPW_CLI_EXIT_SIGNAL + 65) {
            add(text, ", signal %d", code - SPW_CLI_EXIT_SIGNAL);
        }
        add(text, ") without running out of memory");
        add_refused(text, fit);
        break;
    }
}

void spw_cli_verdict_outcome(const struct spw_cli_sim_result *fit, int code, const char *label)
{
    struct text text = {""};

    add(&text, "%s: ", label);
    add_outcome(&text, fit, code);
    fprintf(stderr, "spillway: %s\n", text.text);
}

/* ---- what a process took ---- */

static void say_device(const struct spw_cli_sim_process *process, int ordinal)
{
    const struct spw_cli_sim_device *device = &process->devices[ordinal];
    struct text text = {""};

    add(&text, "%s (pid %d) on device %d (", process->name, process->pid, ordinal);
    add_size(&text, device->total_bytes);
    add(&text, "): peak live ");
    add_size(&text, device->live_peak_bytes);
    if (!device->pooled) {
        add(&text, " (with what the program's own allocator keeps)");
    } else if (device->ordered_peak_bytes > 0) {
        add(&text, ", of it %s at most ", process->tensors ? "PyTorch's tensors" : "on streams");
        add_size(&text, device->ordered_peak_bytes);
    }
    add(&text, "; peak taken from the device ");
    add_size(&text, device->used_peak_bytes);
    if (device->own_peak_bytes > 0) {
        add(&text, ", of it the driver's code, local memory and graphs at most ");
        add_size(&text, device->own_peak_bytes);
    }
    say(&text);
}

/* Figures of all processes and devices. */
struct work {
    uint64_t launches[SPW_CLI_SIM_LAYOUTS];
    uint64_t small_reads, bulk_reads, bulk_read_bytes;
};

static struct work sum_work(const struct spw_cli_sim_result *fit)
{
    struct work work = {{0}, 0, 0, 0};

    for (size_t i = 0; i < fit->count; i++) {
        for (int k = 0; k < fit->processes[i].device_count; k++) {
            const struct spw_cli_sim_device *device = &fit->processes[i].devices[k];

            for (int layout = 0; layout < SPW_CLI_SIM_LAYOUTS; layout++) {
                work.launches[layout] += device->launches[layout];
            }
            work.small_reads += device->small_reads;
            work.bulk_reads += device->bulk_reads;
            work.bulk_read_bytes += device->bulk_read_bytes;
        }
    }
    return work;
}

static void say_launches(const struct work *work)
{
    static const char *const sources[SPW_CLI_SIM_LAYOUTS] = {
        [SPW_CLI_SIM_LAYOUT_BUILTIN] = "of the simulated libraries",
        [SPW_CLI_SIM_LAYOUT_PTX] = "known from PTX",
        [SPW_CLI_SIM_LAYOUT_NAME] = "known from the types in the kernel's name",
        [SPW_CLI_SIM_LAYOUT_CODE] = "known from the kernel's code",
    };
    uint64_t structs = work->launches[SPW_CLI_SIM_LAYOUT_STRUCTS];
    uint64_t checked = 0, all = 0;
    struct text text = {""};

    for (int layout = 0; layout < SPW_CLI_SIM_LAYOUTS; layout++) {
        checked += sources[layout] != NULL ? work->launches[layout] : 0;
        all += work->launches[layout];
    }
    if (all == 0) {
        return;
    }
    add(&text,
        "addresses were checked in %" PRIu64 " of %" PRIu64 " launches (%" PRIu64 ".%" PRIu64
        " %%), whose argument layout is known",
        checked, all, checked * 100 / all, checked * 1000 / all % 10);
    for (int layout = 0, listed = 0; layout < SPW_CLI_SIM_LAYOUTS; layout++) {
        if (sources[layout] != NULL && work->launches[layout] > 0) {
            add(&text, "%s %" PRIu64 " %s", listed++ == 0 ? ":" : ",", work->launches[layout],
                sources[layout]);
        }
    }
    if (structs > 0) {
        add(&text,
            "; that of %" PRIu64 " more is known, but their addresses are in structs, where stale"
            " ones are no error",
            structs);
    }
    say(&text);
}

static void say_reads(const struct work *work)
{
    struct text text = {""};

    if (work->small_reads + work->bulk_reads == 0) {
        return;
    }
    add(&text, "the host read results that no kernel computed: %" PRIu64 " times 4 KiB or less",
        work->small_reads);
    if (work->small_reads > 0) {
        add(&text, " (sizes and conditions that depend on them differ on a real card)");
    }
    add(&text, ", %" PRIu64 " times more", work->bulk_reads);
    if (work->bulk_reads > 0) {
        add(&text, " (");
        add_size(&text, work->bulk_read_bytes);
        add(&text, " in all)");
    }
    say(&text);
}

/* Every process has devices of its own, as long as the simulator knows no others. */
void spw_cli_verdict_shared(const struct spw_cli_sim_result *fit)
{
    for (int k = 0; k < SPW_CLI_SIM_DEVICES; k++) {
        struct text text = {""};
        uint64_t bytes = 0;
        unsigned count = 0;

        for (size_t i = 0; i < fit->count; i++) {
            count += fit->processes[i].devices[k].used;
            bytes += fit->processes[i].devices[k].used_peak_bytes;
        }
        if (count > 1) {
            add(&text,
                "%u processes used device %d, each as if it had it for itself; if they ran at"
                " the same time, one card must have up to ",
                count, k);
            add_size(&text, bytes);
            add(&text, " for them");
            say(&text);
        }
    }
}

void spw_cli_verdict_caution(void)
{
    fputs("spillway:   a real card also holds the context, the code of the libraries that are "
          "simulated here (cuBLAS, cuDNN, ...) and NCCL's buffers: not yet measured on a GPU, and "
          "not counted\n",
          stderr);
}

void spw_cli_verdict_print(const struct spw_cli_sim_result *fit, int code)
{
    struct work work = sum_work(fit);

    spw_cli_verdict_outcome(fit, code, "verdict");
    if (spw_cli_sim_result_outcome(fit, code) == SPW_CLI_SIM_UNUSED) {
        return;
    }
    for (size_t i = 0; i < fit->count; i++) {
        for (int k = 0; k < fit->processes[i].device_count; k++) {
            if (fit->processes[i].devices[k].used) {
                say_device(&fit->processes[i], k);
            }
        }
    }
    if (fit->left_out > 0) {
        struct text more = {""};

        add(&more, "%zu more processes are not counted", fit->left_out);
        say(&more);
    }
    spw_cli_verdict_shared(fit);
    say_launches(&work);
    say_reads(&work);
    spw_cli_verdict_caution();
}
