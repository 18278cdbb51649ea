#include "cli/reports/verdict.h"

#include "common/size.h"
#include "cli/console/messages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A line of output that is put together; it is cut at the end of the buffer. */
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

/* Prints one of the lines below the first. */
static void say(const struct text *text)
{
    fprintf(stderr, "spillway:   %s\n", text->text);
}

/* ---- totals ---- */

static uint64_t refusals(const struct spw_cli_sim_result *result)
{
    uint64_t count = 0;

    for (size_t i = 0; i < result->count; i++) {
        for (int k = 0; k < result->processes[i].device_count; k++) {
            count += result->processes[i].devices[k].refusals;
        }
    }
    return count;
}

/* ---- the first line ---- */

static void add_failure(struct text *text, const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_process *process;
    const struct spw_cli_sim_refusal *refusal;
    int ordinal;

    refusal = spw_cli_sim_result_failure(result, &process, &ordinal);
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
    add(text, " (thread %s, %d), failed: ", refusal->thread, refusal->tid);
    if (refusal->lack == SPW_CLI_SIM_LACK_NOTHING) {
        add(text, "not for lack of memory; the failure was injected (--fail), or the address space "
                  "was used up");
    } else if (refusal->missing_bytes == 0) {
        add(text, "enough memory was free, but in pieces that were too small");
    } else {
        add(text, "%s", refusal->at_least ? "at least " : "");
        add_size(text, refusal->missing_bytes);
        add(text, " more was needed than ");
        if (refusal->lack == SPW_CLI_SIM_LACK_HOST) {
            add(text, "the host memory that may be locked (--host-memory)");
        } else {
            add(text, "the ");
            add_size(text, process->devices[ordinal].total_bytes);
            add(text, " that may be used");
        }
    }
}

/* Calls that failed with out of memory while the command succeeded. */
static void add_refused(struct text *text, const struct spw_cli_sim_result *result)
{
    uint64_t count = refusals(result);
    bool repeated = false;

    for (size_t i = 0; i < result->count; i++) {
        for (int k = 0; k < result->processes[i].device_count; k++) {
            repeated |= result->processes[i].devices[k].last.overcome;
        }
    }
    if (count == 1) {
        add(text, "; one call failed with out of memory%s",
            repeated ? " and succeeded when it was repeated" : ", and the program continued");
    } else if (count > 1) {
        add(text, "; %" PRIu64 " calls failed with out of memory, and the program continued",
            count);
    }
}

static void add_outcome(struct text *text, const struct spw_cli_sim_result *result, int code)
{
    switch (spw_cli_sim_result_outcome(result, code)) {
    case SPW_CLI_SIM_UNUSED:
        add(text, "none: no process used a simulated device");
        break;
    case SPW_CLI_SIM_FITS:
        add(text, "fits");
        if (spw_cli_sim_result_host_peak(result) > 0) {
            add(text, " with ");
            add_size(text, spw_cli_sim_result_host_peak(result));
            add(text, " on the host");
        }
        add_refused(text, result);
        break;
    case SPW_CLI_SIM_DOES_NOT_FIT:
        add_failure(text, result);
        break;
    case SPW_CLI_SIM_FAILED:
        add(text, "none: the command failed (exit code %d", code);
        if (code > SPW_CLI_EXIT_SIGNAL && code < SPW_CLI_EXIT_SIGNAL + 65) {
            add(text, ", signal %d", code - SPW_CLI_EXIT_SIGNAL);
        }
        add(text, ") without running out of memory");
        add_refused(text, result);
        break;
    }
}

void spw_cli_verdict_outcome(const struct spw_cli_sim_result *result, int code, const char *label)
{
    struct text text = {""};

    add(&text, "%s: ", label);
    add_outcome(&text, result, code);
    fprintf(stderr, "spillway: %s\n", text.text);
}

/* ---- the memory of a process ---- */

static void say_device(const struct spw_cli_sim_process *process, int ordinal)
{
    const struct spw_cli_sim_device *device = &process->devices[ordinal];
    struct text text = {""};

    add(&text, "%s (pid %d) on device %d (", process->name, process->pid, ordinal);
    add_size(&text, device->total_bytes);
    add(&text, "): peak live ");
    add_size(&text, device->live_peak_bytes);
    if (!device->pooled) {
        add(&text, " (with the cache of the program's own allocator)");
    } else if (device->ordered_peak_bytes > 0) {
        add(&text, " (%s: up to ",
            process->tensors ? "PyTorch's tensors" : "allocated in stream order");
        add_size(&text, device->ordered_peak_bytes);
        add(&text, ")");
    }
    add(&text, "; peak device memory ");
    add_size(&text, device->used_peak_bytes);
    if (device->own_peak_bytes > 0) {
        add(&text, " (the driver's code, local memory and graphs: up to ");
        add_size(&text, device->own_peak_bytes);
        add(&text, ")");
    }
    say(&text);
}

/* Sums over all processes and devices. */
struct work {
    uint64_t launches[SPW_LAYOUT_COUNT];
    uint64_t small_reads, bulk_reads, bulk_read_bytes;
};

static struct work sum_work(const struct spw_cli_sim_result *result)
{
    struct work work = {{0}, 0, 0, 0};

    for (size_t i = 0; i < result->count; i++) {
        for (int k = 0; k < result->processes[i].device_count; k++) {
            const struct spw_cli_sim_device *device = &result->processes[i].devices[k];

            for (int layout = 0; layout < SPW_LAYOUT_COUNT; layout++) {
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
    uint64_t unknown = work->launches[SPW_LAYOUT_UNKNOWN];
    uint64_t structs = work->launches[SPW_LAYOUT_STRUCTS];
    uint64_t all = 0, checked;
    struct text text = {""};

    for (int layout = 0; layout < SPW_LAYOUT_COUNT; layout++) {
        all += work->launches[layout];
    }
    if (all == 0) {
        return;
    }
    checked = all - unknown - structs;
    add(&text,
        "%" PRIu64 ".%" PRIu64 " %% of kernel launches (%" PRIu64 " of %" PRIu64
        ") were checked for use of freed memory",
        checked * 100 / all, checked * 1000 / all % 10, checked, all);
    if (unknown + structs > 0) {
        add(&text, "; not checked: ");
    }
    if (unknown > 0) {
        add(&text, "%" PRIu64 " whose arguments are not known%s", unknown, structs > 0 ? ", " : "");
    }
    if (structs > 0) {
        add(&text, "%" PRIu64 " whose addresses are in structs", structs);
    }
    say(&text);
}

static void say_reads(const struct work *work)
{
    struct text text = {""};

    if (work->small_reads > 0) {
        add(&text,
            "the program read %" PRIu64
            " GPU result%s of 4 KiB or less, which %s not computed here "
            "(often 0); if tensor sizes depend on them, memory differs on a real GPU",
            work->small_reads, work->small_reads == 1 ? "" : "s",
            work->small_reads == 1 ? "was" : "were");
        say(&text);
    }
    if (work->bulk_reads > 0) {
        text.text[0] = '\0';
        add(&text, "the program read %" PRIu64 " larger GPU result%s (", work->bulk_reads,
            work->bulk_reads == 1 ? "" : "s");
        add_size(&text, work->bulk_read_bytes);
        add(&text, " in total) not computed here");
        say(&text);
    }
}

/* The simulator gives every process devices of its own. */
void spw_cli_verdict_shared(const struct spw_cli_sim_result *result)
{
    for (int k = 0; k < SPW_DEVICES_MAX; k++) {
        struct text text = {""};
        uint64_t bytes = 0;
        unsigned count = 0;

        for (size_t i = 0; i < result->count; i++) {
            count += result->processes[i].devices[k].used;
            bytes += result->processes[i].devices[k].used_peak_bytes;
        }
        if (count > 1) {
            add(&text,
                "%u processes used device %d, each with a simulated device of its own; if they run "
                "at the same time, a real GPU needs up to ",
                count, k);
            add_size(&text, bytes);
            add(&text, " for them");
            say(&text);
        }
    }
}

void spw_cli_verdict_caution(void)
{
    fputs("spillway:   a real GPU also holds the CUDA context, the code of cuBLAS, cuDNN and other "
          "libraries, and NCCL's buffers: these are not counted, and not yet measured on a GPU\n",
          stderr);
}

void spw_cli_verdict_print(const struct spw_cli_sim_result *result, int code)
{
    struct work work = sum_work(result);

    spw_cli_verdict_outcome(result, code, "verdict");
    if (spw_cli_sim_result_outcome(result, code) == SPW_CLI_SIM_UNUSED) {
        return;
    }
    for (size_t i = 0; i < result->count; i++) {
        for (int k = 0; k < result->processes[i].device_count; k++) {
            if (result->processes[i].devices[k].used) {
                say_device(&result->processes[i], k);
            }
        }
    }
    if (result->left_out > 0) {
        struct text more = {""};

        add(&more, "%zu more processes are not counted", result->left_out);
        say(&more);
    }
    spw_cli_verdict_shared(result);
    say_launches(&work);
    say_reads(&work);
    spw_cli_verdict_caution();
}
