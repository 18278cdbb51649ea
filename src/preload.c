/* libspillway.so: the only file that knows every folder.
 *
 * At the first CUDA initialisation it reads the options and starts log and statistics; at the first
 * use of a device it makes the device's pool, backend and host tier. When the object is loaded it
 * only notes the folder (common/start.h). */
#include "backend/backend.h"
#include "callsite/capture.h"
#include "callsite/report.h"
#include "callsite/top_sites.h"
#include "common/child.h"
#include "common/log.h"
#include "common/options.h"
#include "common/size.h"
#include "driver/dl.h"
#include "driver/driver.h"
#include "intercept/entry.h"
#include "intercept/fork.h"
#include "migrate/barrier.h"
#include "migrate/migrate.h"
#include "pool/pool.h"
#include "record/record.h"
#include "serve/control.h"
#include "serve/decision.h"
#include "serve/host_budget.h"
#include "serve/placement.h"
#include "serve/policy_file.h"
#include "serve/share.h"
#include "stats/exit.h"
#include "stats/file.h"
#include "stats/output.h"
#include "stats/path.h"
#include "stats/shm.h"
#include "stats/stats.h"
#include "torch/torch.h"
#include "track/process.h"
#include "track/spill.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static_assert((int)SPW_CALL_COUNT <= (int)SPW_STATS_CALLS, "a slot for every call of our own");

/* ---- the mode ---- */

enum { TORCH_WHY = 256 };

struct mode_text {
    const char *name;
    const char *why;
    bool said; /* to the user; else only with SPILLWAY_LOG=info */
};

/* How PyTorch's memory is served, and why. The text may be in `ret_why`. */
static struct mode_text torch_text(char *ret_why, size_t capacity)
{
    const struct spw_track_torch *torch = &spw_process.torch;

    switch (atomic_load(&torch->state)) {
    case SPW_TORCH_TENSORS:
        (void)snprintf(ret_why, capacity, "the pool serves each tensor of PyTorch %s",
                       torch->version);
        return (struct mode_text){"tensor", ret_why, true};
    case SPW_TORCH_SEGMENTS:
        (void)snprintf(ret_why, capacity,
                       "PyTorch %s: %s; its cache serves tensors, the pool serves its segments; "
                       "unavailable: per-tensor placement",
                       torch->version, torch->why != NULL ? torch->why : "as asked for");
        return (struct mode_text){"segment", ret_why, true};
    case SPW_TORCH_ASYNC:
        return (struct mode_text){"tensor", "the user chose cudaMallocAsync for PyTorch", true};
    case SPW_TORCH_FOREIGN:
        return (struct mode_text){"auto",
                                  "the user chose an allocator for PyTorch: what it calls is "
                                  "served",
                                  true};
    default:
        return (struct mode_text){"auto", "PyTorch is not in use: all allocation calls are served",
                                  false};
    }
}

static struct mode_text mode_text(enum spw_mode mode, char *ret_why, size_t capacity)
{
    switch (mode) {
    case SPW_MODE_OBSERVE:
        return (struct mode_text){
            "observe", "SPILLWAY_MODE=observe; limits and accounting only; the driver allocates",
            true};
    case SPW_MODE_SEGMENT:
        return (struct mode_text){"segment",
                                  "SPILLWAY_MODE=segment; unavailable: per-tensor placement", true};
    default:
        return torch_text(ret_why, capacity);
    }
}

static void say_mode(const struct mode_text *text)
{
    struct spw_stats *stats = spw_process.stats;

    (void)snprintf(stats->mode, sizeof(stats->mode), "%s", text->name);
    (void)snprintf(stats->why, sizeof(stats->why), "%s", text->why);
    if (text->said) {
        spw_log_always("mode %s (%s)", text->name, text->why);
    } else {
        spw_log(SPW_LOG_INFO, "mode %s (%s)", text->name, text->why);
    }
}

static atomic_bool mode_is_said;

/* Announces the mode, with the first pool: nothing depends on the mode before. */
static void announce_mode(void)
{
    char why[TORCH_WHY];
    struct mode_text text;

    if (!atomic_exchange(&mode_is_said, true)) {
        text = mode_text(spw_process.mode, why, sizeof(why));
        say_mode(&text);
    }
}

/* PyTorch may come after the first pool. */
static void note_mode(void)
{
    char why[TORCH_WHY];
    struct mode_text text;

    if (atomic_load(&mode_is_said)) {
        text = mode_text(spw_process.mode, why, sizeof(why));
        if (strncmp(text.why, spw_process.stats->why, sizeof(spw_process.stats->why) - 1) != 0) {
            say_mode(&text);
        }
    }
}

/* ---- call sites ---- */

static void set_charges(struct spw_device *device, int ordinal)
{
    struct spw_callsite_shm *sites = spw_process.sites;

    device->charges = sites != NULL ? &sites->charges[ordinal] : NULL;
    device->pinned = sites != NULL ? &sites->pinned[ordinal] : NULL;
}

static void report_sites(struct spw_writer *writer)
{
    struct spw_callsite_shm *sites = spw_process.sites;

    if (sites != NULL) {
        spw_callsite_report(writer, sites->charges, sites->pinned, (int)sites->devices);
    }
}

/* The statistics exist. */
static void start_sites(int devices)
{
    enum spw_sites mode = spw_option_get(SPW_OPT_SPILLWAY_SITES, NULL, 0).word;
    struct spw_callsite_shm *sites;

    if (mode == SPW_SITES_OFF) {
        return;
    }
    spw_callsite_start(mode);
    sites = spw_stats_shm_create(sizeof(*sites), spw_process.stats->sites);
    if (sites == NULL || !spw_callsite_shm_init(sites, (uint32_t)devices, spw_stats_shm_back)) {
        return;
    }
    spw_process.sites = sites;
    spw_callsite_publish(sites);
    spw_stats_extend(report_sites);
}

/* In a child after fork: charges begin anew, in memory of its own. False when there is none. */
static bool forget_sites(void)
{
    uint32_t devices;

    if (spw_process.sites == NULL) {
        return true;
    }
    devices = spw_process.sites->devices;
    spw_callsite_publish(NULL);
    if (!spw_stats_shm_forget()) {
        return false;
    }
    (void)spw_callsite_shm_init(spw_process.sites, devices, NULL);
    return true;
}

/* ---- the recording ---- */

static struct spw_counters *counters_of(int device)
{
    return &spw_process.stats->devices[device].counters;
}

static const char *call_name(int call)
{
    return call < SPW_CALL_COUNT ? spw_driver_call_name((enum spw_own_call)call) : NULL;
}

static void note_call(int ordinal, int call, uint64_t ns)
{
    if (spw_record_active()) {
        spw_record_call(ordinal, call, ns);
    }
}

static const char *rule_name(int rule)
{
    const struct spw_policy *policy = atomic_load(&spw_process.policy.policy);

    return policy != NULL && (size_t)rule < policy->rule_count ? policy->rules[rule].name : NULL;
}

/* The statistics have started. */
static void start_record(struct spw_driver *driver)
{
    static char host[64];
    struct spw_option_value path = spw_option_get(SPW_OPT_SPILLWAY_RECORD, NULL, 0);
    struct spw_option_value size = spw_option_get(SPW_OPT_SPILLWAY_RECORD_SIZE, NULL, 0);
    struct spw_stats *stats = spw_process.stats;
    const struct spw_record_start start = {
        .path = path.text,
        .limit = size.percent ? size.permille : size.bytes,
        .permille = size.percent,
        .start_ticks = stats->start,
        .rank = spw_stats_rank(),
        .devices = spw_process.device_count,
        .uses = spw_option_get(SPW_OPT_SPILLWAY_RECORD_USES, NULL, 0).on,
        .counters = counters_of,
        .call_name = call_name,
        .rule_name = rule_name,
        .about = {stats->process, stats->mode, host, rule_name(0) != NULL ? stats->policy : NULL},
    };

    if (path.set) {
        (void)gethostname(host, sizeof(host) - 1);
        spw_record_start(&start);
        driver->called = note_call;
    }
}

/* Writes a migration, and the ranges of neighbouring granules. */
static void record_move(int ordinal, const struct spw_migrate_switched *switched)
{
    const struct spw_move_place *places = switched->places;
    uint64_t granule = switched->granule_bytes, bytes[2] = {0};
    size_t count = switched->count;

    if (!spw_record_active()) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bytes[places[i].to == SPW_TIER_HOST] += granule;
    }
    spw_record_move(ordinal, bytes[true], bytes[false], switched->closed_ns, switched->predicted);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;

        while (end < count && places[end].to == places[i].to &&
               places[end].granule == places[end - 1].granule + granule) {
            end++;
        }
        spw_record_range(ordinal, places[i].granule, (end - i) * granule,
                         places[i].to == SPW_TIER_HOST);
        i = end;
    }
}

/* ---- start ---- */

static void report_unknown(const char *name, void *context)
{
    char complaint[256];

    spw_option_unknown(name, complaint, sizeof(complaint));
    spw_log_always("%s", complaint);
}

/* Reports every option with a bad value, once. Later readers of an option do not report it. */
static void report_options(void)
{
    char complaint[SPW_COMPLAINT_TEXT];

    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        const struct spw_option_row *row = spw_option_row(i);

        if (row->scope == SPW_SCOPE_SIM || i == SPW_OPT_SPILLWAY_LOG) {
            continue;
        }
        (void)spw_option_get(i, complaint, sizeof(complaint));
        if (complaint[0] != 0) {
            spw_log_always("%s", complaint);
        }
    }
    spw_option_each_unknown(report_unknown, NULL);
}

static bool may_spill(void)
{
    return spw_option_get(SPW_OPT_SPILLWAY_SPILL, NULL, 0).word != SPW_SPILL_OFF &&
           spw_process.mode != SPW_MODE_OBSERVE;
}

/* Writes the names of the policy in force and of its rules to the statistics. */
static void name_rules(void)
{
    const struct spw_policy *policy = atomic_load(&spw_process.policy.policy);
    struct spw_stats *stats = spw_process.stats;

    if (policy == NULL) {
        return;
    }
    (void)snprintf(stats->policy, sizeof(stats->policy), "%s", spw_serve_policy_file_name());
    for (size_t i = 0; i < policy->rule_count; i++) {
        (void)snprintf(stats->rule_names[i], sizeof(stats->rule_names[i]), "%s",
                       policy->rules[i].name);
    }
    spw_log(SPW_LOG_INFO, "policy %s is in force: %zu rules", spw_serve_policy_file_name(),
            policy->rule_count);
}

static void prepare(void)
{
    spw_torch_look();
    spw_serve_policy_open_once();
}

static void start(struct spw_process *process)
{
    struct spw_driver *driver = atomic_load(&process->driver);
    struct spw_stats *stats;
    char why[TORCH_WHY];
    struct mode_text text;

    spw_log_init();
    report_options();
    spw_child_keep_environment();
    process->mode = spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word;
    process->check = spw_option_get(SPW_OPT_SPILLWAY_CHECK, NULL, 0).on;
    process->whole_copies = !spw_option_get(SPW_OPT_SPILLWAY_SPLIT_COPIES, NULL, 0).on;
    process->graphs_stay =
        spw_option_get(SPW_OPT_SPILLWAY_GRAPHS, NULL, 0).word == SPW_GRAPH_MEMORY_STAY;
    process->free_waits = spw_option_get(SPW_OPT_SPILLWAY_FREE_WAITS, NULL, 0).on;
    if (process->mode == SPW_MODE_OBSERVE || process->check) {
        atomic_store(&process->unusual, true);
    }
    text = mode_text(process->mode, why, sizeof(why));
    if (process->mode == SPW_MODE_OBSERVE && atomic_load(&spw_process.policy.policy) != NULL) {
        spw_log_always("SPILLWAY_POLICY has no effect in mode observe");
    }
    /* For moves, and for blocks that other processes map. It also tells which call is inside
     * another, and so whose uses are recorded. */
    if (process->mode != SPW_MODE_OBSERVE ||
        spw_option_get(SPW_OPT_SPILLWAY_RECORD_USES, NULL, 0).on) {
        spw_migrate_barrier_arm();
    }
    stats = spw_process.stats = spw_stats_create();
    stats->simulated = driver->simulated != NULL;
    start_sites(process->device_count);
    for (int i = 0; i < SPW_CALL_COUNT; i++) {
        (void)snprintf(stats->call_names[i], sizeof(stats->call_names[i]), "%s",
                       spw_driver_call_name(i));
    }
    for (int i = 0; i < process->device_count; i++) {
        process->devices[i].counters = &stats->devices[i].counters;
        process->devices[i].refusal = &stats->devices[i].refusal;
        process->devices[i].rules = stats->devices[i].rules;
        process->devices[i].oom = &stats->oom;
        set_charges(&process->devices[i], i);
        driver->calls[i] = stats->devices[i].driver_calls;
    }
    name_rules();
    spw_stats_start(stats, text.name, text.why,
                    spw_option_get(SPW_OPT_SPILLWAY_STATS, NULL, 0).text,
                    (enum spw_summary)spw_option_get(SPW_OPT_SPILLWAY_SUMMARY, NULL, 0).word,
                    process->device_count);
    start_record(driver);
    spw_log(SPW_LOG_INFO, "%s with %d device%s, mode %s",
            driver->simulated != NULL ? "simulated GPU" : "NVIDIA driver", process->device_count,
            process->device_count == 1 ? "" : "s", text.name);
    if (spw_driver_dl_behind() != NULL) {
        spw_log(SPW_LOG_INFO,
                "%s stands between spillway and the driver: what it bounds or counts, "
                "it does for spillway too",
                spw_driver_dl_behind());
    }
    spw_intercept_fork_watch();
}

static void report(void)
{
    (void)spw_stats_write(spw_process.stats);
}

static void opened(void)
{
    spw_serve_control_start();
    spw_serve_share_join();
}

static bool forget(void)
{
    spw_serve_control_forget();
    spw_serve_share_forget();
    spw_record_forget();
    return spw_stats_forget() && forget_sites();
}

/* ---- the pool of a device ---- */

enum { ARENA_FACTOR = 8, FREES_BITS = 40 /* of what one pool may number */ };
static const uint64_t least_room = UINT64_C(512) << 20;

/* Asks the driver for the device's total and free memory. */
static enum spw_err ask_memory(struct spw_driver *driver, const struct spw_device *device,
                               CUcontext context, uint64_t *ret_total, uint64_t *ret_free)
{
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    CUcontext popped;
    size_t total = 0;
    size_t free = 0;

    if (context != NULL) {
        result = SPW_DRIVER_CALL(driver, device->ordinal, cuCtxPushCurrent_v2, context);
    }
    if (result == CUDA_SUCCESS) {
        result = SPW_DRIVER_CALL(driver, device->ordinal, cuMemGetInfo_v2, &free, &total);
        (void)SPW_DRIVER_CALL(driver, device->ordinal, cuCtxPopCurrent_v2, &popped);
    }
    if (result != CUDA_SUCCESS) {
        result =
            SPW_DRIVER_CALL(driver, device->ordinal, cuDeviceTotalMem_v2, &total, device->handle);
        free = total;
    }
    *ret_total = total;
    *ret_free = free;
    return spw_err_from_driver((int)result);
}

/* A size as the user wrote it; a plain number of bytes, as the launcher writes it, with a unit. */
static const char *text_of(enum spw_option number, const struct spw_option_value *option,
                           char text[SPW_SIZE_TEXT])
{
    const char *given = spw_option_environment(spw_option_row(number)->name);

    return given[strspn(given, "0123456789")] == '\0' ? spw_size_text(option->bytes, text) : given;
}

/* The limit of a device: the user's, reduced to leave room for memory outside the pool, such as
 * code, local memory and graphs. The simulated GPU needs no such room. */
static uint64_t choose_limit(const struct spw_driver *driver, const struct spw_device *device,
                             uint64_t total, uint64_t free)
{
    static bool told[SPW_DEVICES_MAX]; /* by ordinal; under spw_locks.process */
    struct spw_option_value option = spw_option_get(SPW_OPT_SPILLWAY_LIMIT, NULL, 0);
    uint64_t room = free / 50 > least_room ? free / 50 : least_room;
    uint64_t most = free > room ? free - room : free;
    uint64_t limit = spw_option_bytes(&option, total);
    char asked[SPW_SIZE_TEXT], taken[SPW_SIZE_TEXT];

    if (driver->simulated != NULL) {
        most = total;
    } else if (spw_serve_share_is_on()) {
        room = total / 50 > least_room ? total / 50 : least_room;
        most = total > room ? total - room : total;
    }
    if (!option.set) {
        return most;
    }
    if (limit > total && !told[device->ordinal]) {
        told[device->ordinal] = true;
        spw_log_always("SPILLWAY_LIMIT=%s is more than device %d has; the limit is %s",
                       text_of(SPW_OPT_SPILLWAY_LIMIT, &option, asked), device->ordinal,
                       spw_size_text(most, taken));
    }
    return limit < most ? limit : most;
}

/* `most` is the size of device and host memory together. */
static enum spw_err make_pool(const struct spw_device *device, struct spw_backend *backend,
                              uint64_t most, uint64_t limit, bool has_host,
                              struct spw_pool **ret_pool)
{
    static uint64_t pools_made; /* under spw_locks.process */
    uint64_t granule = spw_backend_granule(backend);
    struct spw_pool_config config = {
        .clock = pools_made++ << FREES_BITS,
        .granule_bytes = granule,
        .chunk_bytes = spw_option_get(SPW_OPT_SPILLWAY_CHUNK, NULL, limit).bytes,
        .limit_bytes = limit,
        .host_untried = has_host,
        .growth_permille = spw_option_get(SPW_OPT_SPILLWAY_GROWTH, NULL, 0).permille,
        .charges = device->charges,
        .to_commit = &spw_process.lazies,
        .host_chunks = spw_process.whole_copies ? NULL : &spw_process.looked_at,
        .accounts = device->rules,
    };
    uint32_t factors = ARENA_FACTOR;
    enum spw_err err = SPW_E_NO_MEMORY;

    config.numbered_heaps = spw_serve_decision_regions(&config.host_heap);
    factors += config.numbered_heaps + (config.host_heap ? 1 : 0);
    /* Where addresses are scarce, a smaller arena is tried. */
    for (uint64_t factor = factors; factor > 0 && err != SPW_OK; factor /= 2) {
        config.arena_bytes = (most * factor + granule - 1) / granule * granule;
        err = spw_pool_create(&config, spw_backend_vm(backend), device->counters, ret_pool);
    }
    return err;
}

/* ---- the host tier of a device ---- */

/* Reports, once, that the host limit is lower than the user asked for. */
static void tell_host_limit(const struct spw_migrate_host_memory *memory,
                            const struct spw_option_value *option, uint64_t limit, bool simulated)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    uint64_t most = memory->limited ? memory->group_limit : memory->total;
    char asked[SPW_SIZE_TEXT], there[SPW_SIZE_TEXT], taken[SPW_SIZE_TEXT];

    if (!atomic_flag_test_and_set(&told)) {
        spw_log_always("SPILLWAY_HOST_LIMIT=%s is more than the %s that %s; the limit is %s",
                       text_of(SPW_OPT_SPILLWAY_HOST_LIMIT, option, asked),
                       spw_size_text(most, there),
                       simulated         ? "the simulated machine has"
                       : memory->limited ? "the control group allows"
                                         : "this machine has",
                       spw_size_text(limit, taken));
    }
}

/* The host memory that one device may use; 0: spilling is off. */
static uint64_t choose_host_limit(const struct spw_driver *driver)
{
    struct spw_option_value option = spw_option_get(SPW_OPT_SPILLWAY_HOST_LIMIT, NULL, 0);
    struct spw_migrate_host_memory memory;
    uint64_t most, limit;

    if (!may_spill()) {
        return 0;
    }
    spw_serve_host_memory(&memory);
    if (!option.set) {
        return spw_serve_host_share(&memory);
    }
    most = memory.limited && memory.group_limit < memory.total ? memory.group_limit : memory.total;
    limit = spw_option_bytes(&option, memory.total);
    if (most > 0 && limit > most) {
        limit = spw_serve_host_share(&memory);
        tell_host_limit(&memory, &option, limit, driver->simulated != NULL);
    }
    return limit;
}

static bool may_move(void)
{
    return !atomic_load(&spw_process.leaving) && spw_track_spill_may_move();
}

static uint64_t move_wait_ns(void)
{
    enum { MILLION = 1000000 };

    return spw_option_get(SPW_OPT_SPILLWAY_MOVE_WAIT, NULL, 0).bytes * MILLION;
}

/* NULL: spilling is off. */
static struct spw_migrate *make_tier(const struct spw_device *device, struct spw_backend *backend,
                                     struct spw_pool *pool, uint64_t limit)
{
    enum spw_overlap overlap = spw_option_get(SPW_OPT_SPILLWAY_OVERLAP, NULL, 0).word;
    const struct spw_migrate_config config = {
        .pool = pool,
        .counters = device->counters,
        .ordinal = device->ordinal,
        .limit_bytes = limit,
        .move_wait_ns = move_wait_ns(),
        .overlap = overlap != SPW_OVERLAP_OFF,
        .trust = overlap == SPW_OVERLAP_TRUST,
        .audit = overlap == SPW_OVERLAP_VALIDATED,
        .may_move = may_move,
        .label = spw_callsite_label_of,
        .describe = spw_track_spill_describe,
        .moved = record_move,
        .host_room = spw_serve_host_room,
        .verify = spw_option_get(SPW_OPT_SPILLWAY_VERIFY, NULL, 0).on,
    };
    struct spw_migrate *tier;

    if (limit == 0) {
        return NULL;
    }
    return spw_migrate_create(&config, &tier) == SPW_OK ? tier : NULL;
}

static enum spw_err open_device(struct spw_device *device, CUcontext context,
                                struct spw_pool **ret_pool, struct spw_backend **ret_backend,
                                struct spw_migrate **ret_tier)
{
    enum { WAIT_FACTOR = 10 };
    struct spw_driver *driver = atomic_load(&spw_process.driver);
    uint64_t host = choose_host_limit(driver);
    uint64_t total, free;
    struct spw_backend *backend;
    enum spw_err err;

    err = ask_memory(driver, device, context, &total, &free);
    if (err != SPW_OK) {
        return err;
    }
    device->total_bytes = total;
    err = spw_backend_create(driver, device->ordinal, &backend);
    if (err != SPW_OK) {
        return err;
    }
    spw_backend_set_patience(backend, move_wait_ns() * WAIT_FACTOR);
    err = make_pool(device, backend, total + host, choose_limit(driver, device, total, free),
                    host > 0, ret_pool);
    if (err != SPW_OK) {
        spw_backend_destroy(backend, true);
        return err;
    }
    *ret_backend = backend;
    *ret_tier = make_tier(device, backend, *ret_pool, host);
    announce_mode();
    return SPW_OK;
}

void (*const *const spw_intercept_entries)(void) = spw_intercept_entry_table;

const struct spw_track_ops spw_track_ops = {
    .prepare = prepare,
    .look = spw_torch_look,
    .note_mode = note_mode,
    .start = start,
    .open = open_device,
    .opened = opened,
    .ask_others = spw_serve_share_ask,
    .report = report,
    .forget = forget,
};
