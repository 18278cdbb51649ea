#include "record/record.h"

#include "common/options.h"
#include "record/sites.h"
#include "record/writer.h"
#include "stats/output.h"
#include "stats/path.h"
#include "system/lock.h"
#include "system/log.h"
#include "system/sleep.h"
#include "system/start.h"
#include "system/thread_name.h"
#include "system/uncancelled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LONG_CALL_NS = 20000, /* calls that take at least this long are recorded one by one */
    NAME_ROOM = SPW_RECORD_ROOM + SPW_RECORD_TEXT,
    USE_ROOM = SPW_RECORD_ROOM + SPW_RECORD_USED * 10,
    MARK_BYTES = 32, /* most bytes of a step, or of a mark without its name */
};

static _Thread_local struct {
    uint32_t recording; /* the recording that `number` is for */
    uint32_t number;
    uint32_t events;
    char name[SPW_THREAD_NAME];
} this_thread __attribute__((tls_model("initial-exec")));

/* ---- what does not fit ---- */

static __attribute__((noinline)) void lose(int device, uint64_t bytes, bool alloc, bool free)
{
    struct spw_record_header *header = spw_record.writer.header;
    uint64_t now, peak;

    if (header == NULL) {
        return;
    }
    now = spw_record_writer_clock();
    if (spw_counter_get(&header->lost.events) == 0) {
        spw_counter_set(&header->lost.since, now);
    }
    spw_counter_set(&header->lost.until, now);
    spw_counter_add(&header->lost.events, 1);
    spw_counter_add(&header->lost.allocs, alloc);
    spw_counter_add(&header->lost.alloc_bytes, bytes);
    spw_counter_add(&header->lost.frees, free);
    if (device < SPW_DEVICES_MAX && spw_record.counters[device] != NULL) {
        peak = spw_counter_get(&spw_record.counters[device]->live_peak_bytes);
        spw_counter_set(&header->live_peak[device], peak);
    }
}

/* ---- names ---- */

static bool put_name(enum spw_record_named kind, uint64_t number, const char *name)
{
    uint8_t *at = spw_record_begin_plain(SPW_RECORD_NAME, spw_record.writer.last.device, NAME_ROOM);

    if (at != NULL) {
        at = spw_record_put(at, kind);
        at = spw_record_put(at, number);
        spw_record_end(spw_record_put_text(at, name));
    }
    return at != NULL;
}

/* Gives the calling thread a number, and writes its name. A thread that is renamed gets another
 * number. */
static __attribute__((noinline)) void note_thread(void)
{
    spw_thread_name(this_thread.name);
    this_thread.recording = spw_record.number;
    this_thread.number = spw_record.threads++;
    put_name(SPW_RECORD_NAMED_THREAD, this_thread.number, this_thread.name);
}

static inline uint32_t thread_number(void)
{
    if (SPW_UNLIKELY(this_thread.recording != spw_record.number ||
                     (++this_thread.events % SPW_THREAD_NAME_EVERY == 0 &&
                      spw_thread_is_renamed(this_thread.name)))) {
        note_thread();
    }
    return this_thread.number;
}

static void name_all(const struct spw_record_start *start)
{
    char text[SPW_RECORD_TEXT];

    for (unsigned i = 0; i < sizeof(start->about) / sizeof(start->about[0]); i++) {
        if (start->about[i] != NULL) {
            put_name(SPW_RECORD_NAMED_ABOUT, i, start->about[i]);
        }
    }
    if (start->card[0] != '\0') {
        put_name(SPW_RECORD_NAMED_ABOUT, SPW_RECORD_ABOUT_CARD, start->card);
    }
    text[0] = text[sizeof(text) - 1] = '\0';
    (void)gethostname(text, sizeof(text) - 1);
    put_name(SPW_RECORD_NAMED_ABOUT, SPW_RECORD_ABOUT_HOST, text);
    for (int i = 0; start->call_name(i) != NULL; i++) {
        put_name(SPW_RECORD_NAMED_CALL, (uint64_t)i, start->call_name(i));
    }
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        const char *name = spw_option_row(i)->name;
        const char *value = spw_option_environment(name);

        if (value != NULL && *value != '\0') {
            snprintf(text, sizeof(text), "%s=%s", name, value);
            put_name(SPW_RECORD_NAMED_OPTION, (uint64_t)i, text);
        }
    }
    for (int i = 0; start->rule_name(i) != NULL; i++) {
        put_name(SPW_RECORD_NAMED_RULE, (uint64_t)i + 1, start->rule_name(i));
    }
}

/* Makes the file that is due. */
static __attribute__((noinline, cold)) void make_file(void)
{
    SPW_UNCANCELLED;
    struct spw_record_start start = spw_record.due;

    spw_record.due.path = NULL;
    if (spw_record_writer_open(start.path, start.start_ticks, start.limit, start.permille,
                               (uint32_t)start.devices, start.rank)) {
        name_all(&start);
        spw_stats_output_set(SPW_STATS_RECORDING, spw_record.writer.file.path);
        return;
    }
    atomic_store(&spw_record.events, false);
    atomic_store(&spw_record.uses, false);
}

/* Takes the lock before an event that may be the first. */
static inline void enter(void)
{
    spw_lock(&spw_locks.record);
    if (SPW_UNLIKELY(spw_record.due.path != NULL)) {
        make_file();
    }
}

/* ---- figures ---- */

/* Writes the figures of a device that differ from those in the block. */
static __attribute__((noinline)) void put_gauges(int device)
{
    const struct spw_counters *now = spw_record.counters[device];
    uint64_t *last = spw_record.writer.last.gauges[device];
    uint64_t values[SPW_RECORD_GAUGE_COUNT];
    uint64_t mask = 0;
    uint8_t *at = spw_record_begin_plain(SPW_RECORD_GAUGES, device, SPW_RECORD_ROOM);

    if (at == NULL) {
        return;
    }
#define SPW_RECORD_GAUGE(name) values[SPW_RECORD_GAUGE_##name] = spw_counter_get(&now->name);
#define SPW_RECORD_GAUGE_OWN(name)                                                                 \
    values[SPW_RECORD_GAUGE_##name] = spw_counter_get(&spw_record.own[device].name);
#include "record/gauges.def"
#undef SPW_RECORD_GAUGE_OWN
    for (unsigned i = 0; i < SPW_RECORD_GAUGE_COUNT; i++) {
        mask |= values[i] != last[i] ? UINT64_C(1) << i : 0;
    }
    at = spw_record_put(at, mask);
    for (unsigned i = 0; i < SPW_RECORD_GAUGE_COUNT; i++) {
        if ((mask >> i & 1) != 0) {
            at = spw_record_put_signed(at, (int64_t)(values[i] - last[i]));
            last[i] = values[i];
        }
    }
    spw_record_end(at);
}

/* Records the figures of a device if one of the figures that allocations change has changed. */
static inline void follow(int device)
{
    const struct spw_counters *now = spw_record.counters[device];
    const uint64_t *last = spw_record.writer.last.gauges[device];
    uint64_t changed = 0;

    if (now == NULL) {
        return;
    }
#define SPW_RECORD_GAUGE(name)
#define SPW_RECORD_GAUGE_OWN(name)
#define SPW_RECORD_GAUGE_HOT(name)                                                                 \
    changed |= spw_counter_get(&now->name) ^ last[SPW_RECORD_GAUGE_##name];
#include "record/gauges.def"
#undef SPW_RECORD_GAUGE_OWN
#undef SPW_RECORD_GAUGE_HOT
    if (SPW_UNLIKELY(changed != 0)) {
        put_gauges(device);
    }
}

static void follow_all(int device)
{
    if (device >= 0 && device < SPW_DEVICES_MAX && spw_record.counters[device] != NULL) {
        put_gauges(device);
    }
}

/* ---- events ---- */

void spw_record_alloc(const struct spw_record_alloc *alloc)
{
    unsigned flags = (unsigned)alloc->source | (alloc->charged ? SPW_RECORD_CHARGED : 0u) |
                     (alloc->host_bytes > 0 ? SPW_RECORD_ON_HOST : 0u) |
                     alloc->rule << SPW_RECORD_RULE_SHIFT;
    unsigned low = (unsigned)(alloc->address & 0xff);
    bool more = (flags | low) != 0;
    uint8_t *at;

    enter();
    spw_record_sites_use(alloc->site);
    at = spw_record_begin(SPW_RECORD_ALLOC | (more ? SPW_RECORD_HAS_MORE : 0u), alloc->device,
                          alloc->stream, thread_number(), SPW_RECORD_ROOM);
    if (SPW_LIKELY(at != NULL)) {
        at = spw_record_put_address(at, alloc->address);
        at = spw_record_put(at, alloc->bytes);
        at = spw_record_put(at, alloc->site);
        if (SPW_UNLIKELY(more)) {
            at = spw_record_put(at, flags);
            at = spw_record_put(at, low);
            at = alloc->host_bytes > 0 ? spw_record_put(at, alloc->host_bytes) : at;
        }
        spw_record_end(at);
        follow(alloc->device);
    } else {
        lose(alloc->device, alloc->bytes, true, false);
    }
    spw_unlock(&spw_locks.record);
}

void spw_record_free(int device, uint64_t stream, uint64_t address)
{
    unsigned low = (unsigned)(address & 0xff);
    uint8_t *at;

    enter();
    at = spw_record_begin(SPW_RECORD_FREE | (low != 0 ? SPW_RECORD_HAS_MORE : 0u), device, stream,
                          thread_number(), SPW_RECORD_ROOM);
    if (SPW_LIKELY(at != NULL)) {
        at = spw_record_put_address(at, address);
        if (SPW_UNLIKELY(low != 0)) {
            at = spw_record_put(at, low);
        }
        spw_record_end(at);
    } else {
        lose(device, 0, false, true);
    }
    spw_unlock(&spw_locks.record);
}

void spw_record_use(int device, const uint64_t *addresses, size_t count, bool kernel)
{
    uint8_t *at;

    spw_lock(&spw_locks.record);
    at = spw_record_begin_plain(SPW_RECORD_USE | (kernel ? SPW_RECORD_HAS_MORE : 0u), device,
                                USE_ROOM);
    if (at != NULL) {
        count = count < SPW_RECORD_USED ? count : SPW_RECORD_USED;
        at = spw_record_put(at, count);
        for (size_t i = 0; i < count; i++) {
            at = spw_record_put_address(at, addresses[i]);
        }
        spw_record_end(at);
    } else {
        lose(device, 0, false, false);
    }
    spw_unlock(&spw_locks.record);
}

/* Takes `bytes` of the file's share for marks and steps. When it is used up, counts a lost mark or
 * step and returns false. */
static bool take_share(uint64_t bytes)
{
    struct spw_record_header *header = spw_record.writer.header;

    if (header == NULL) {
        return false;
    }
    if (bytes > header->limit_bytes / SPW_RECORD_MARK_SHARE - spw_record.marks.bytes) {
        spw_counter_add(&header->lost_marks, 1);
        return false;
    }
    spw_record.marks.bytes += bytes;
    return true;
}

/* True if a mark has a place in the file. A beginning also takes the place that its end will need.
 * After a lost beginning the next end is lost as well, so overlapping marks may be confused. */
static bool takes_mark(const char *name, bool begin)
{
    uint64_t bytes = strnlen(name, SPW_RECORD_TEXT) + MARK_BYTES;

    if (begin) {
        bool taken = take_share(2 * bytes);

        spw_record.marks.open += taken;
        spw_record.marks.lost_open += !taken;
        return taken;
    }
    if (spw_record.marks.lost_open > 0) {
        spw_record.marks.lost_open--;
        return take_share(UINT64_MAX);
    }
    if (spw_record.marks.open > 0) {
        spw_record.marks.open--;
        return true;
    }
    return take_share(bytes);
}

void spw_record_step(void)
{
    uint8_t *at;

    enter();
    spw_record.steps++;
    if (!take_share(MARK_BYTES)) {
        spw_unlock(&spw_locks.record);
        return;
    }
    at = spw_record_begin_plain(SPW_RECORD_STEP, spw_record.writer.last.device, SPW_RECORD_ROOM);
    if (at != NULL) {
        spw_record_end(spw_record_put(at, spw_record.steps));
    } else {
        lose(0, 0, false, false);
    }
    spw_unlock(&spw_locks.record);
}

void spw_record_mark(const char *name, bool begin)
{
    enter();
    if (takes_mark(name, begin) && !put_name(SPW_RECORD_NAMED_MARK, begin, name)) {
        lose(0, 0, false, false);
    }
    spw_unlock(&spw_locks.record);
}

void spw_record_pass(int kind, const char *text)
{
    enter();
    if (take_share(strnlen(text, SPW_RECORD_TEXT) + MARK_BYTES) &&
        !put_name(SPW_RECORD_NAMED_PASS, (uint64_t)kind, text)) {
        lose(0, 0, false, false);
    }
    spw_unlock(&spw_locks.record);
}

void spw_record_oom(const struct spw_record_oom *oom)
{
    uint8_t *at;

    enter();
    spw_record_sites_use(oom->site);
    follow_all(oom->device);
    at = spw_record_begin_plain(SPW_RECORD_OOM, oom->device, SPW_RECORD_ROOM);
    if (at != NULL) {
        at = spw_record_put(at, oom->bytes);
        at = spw_record_put(at, oom->missing_bytes);
        at = spw_record_put(at, oom->site);
        at = spw_record_put(at, oom->live_bytes);
        at = spw_record_put(at, oom->committed_bytes);
        spw_record_end(spw_record_put(at, oom->limit_bytes));
    } else {
        lose(oom->device, 0, false, false);
    }
    spw_unlock(&spw_locks.record);
}

void spw_record_move(int device, uint64_t to_host_bytes, uint64_t to_device_bytes, uint64_t ns,
                     bool predicted)
{
    uint8_t *at;

    spw_lock(&spw_locks.record);
    follow_all(device);
    at = spw_record_begin_plain(SPW_RECORD_MOVE | (predicted ? SPW_RECORD_HAS_MORE : 0u), device,
                                SPW_RECORD_ROOM);
    if (at != NULL) {
        at = spw_record_put(at, to_host_bytes);
        at = spw_record_put(at, to_device_bytes);
        spw_record_end(spw_record_put(at, ns));
    } else {
        lose(device, 0, false, false);
    }
    spw_unlock(&spw_locks.record);
}

void spw_record_range(int device, uint64_t address, uint64_t bytes, bool to_host)
{
    uint8_t *at;

    spw_lock(&spw_locks.record);
    at = spw_record_begin_plain(SPW_RECORD_RANGE | (to_host ? SPW_RECORD_HAS_MORE : 0u), device,
                                SPW_RECORD_ROOM);
    if (at != NULL) {
        at = spw_record_put_address(at, address);
        spw_record_end(spw_record_put(at, bytes >> 8));
    } else {
        lose(device, 0, false, false);
    }
    spw_unlock(&spw_locks.record);
}

void spw_record_call(int device, int call, uint64_t ns)
{
    uint8_t *at;

    if (device < 0 || device >= SPW_DEVICES_MAX) {
        return;
    }
    spw_counter_add(&spw_record.own[device].driver_calls, 1);
    spw_counter_add(&spw_record.own[device].driver_ns, ns);
    if (ns < LONG_CALL_NS) {
        return;
    }
    spw_lock(&spw_locks.record);
    at = spw_record_begin_plain(SPW_RECORD_CALL, device, SPW_RECORD_ROOM);
    if (at != NULL) {
        at = spw_record_put(at, (uint64_t)call);
        spw_record_end(spw_record_put(at, ns));
    }
    spw_unlock(&spw_locks.record);
}

/* ---- begin and end ---- */

/* The exit handler: waits for no lock. */
static void at_exit(void)
{
    enum { TRIES = 1000 };
    bool taken = false;

    if (!spw_record_active() || spw_record.writer.header == NULL ||
        spw_record.writer.header->pid != (int32_t)getpid()) {
        return;
    }
    for (int i = 0; i < TRIES && !taken; i++) {
        taken = spw_lock_try(&spw_locks.record);
        if (!taken) {
            spw_sleep_ns(1000);
        }
    }
    if (taken) {
        atomic_store(&spw_record.events, false);
        atomic_store(&spw_record.uses, false);
        for (int i = 0; i < SPW_DEVICES_MAX; i++) {
            follow_all(i);
        }
        spw_record_writer_close();
        spw_unlock(&spw_locks.record);
    }
}

void spw_record_start(const struct spw_record_start *start)
{
    if (!spw_stats_path_expand(start->path, spw_record.due_path, sizeof(spw_record.due_path))) {
        spw_log_always("cannot make the recording %s: %s", start->path,
                       start->path[0] != '/' && spw_start_folder() == NULL
                           ? "the folder that it starts from is gone"
                           : strerror(ENAMETOOLONG));
        return;
    }
    for (int i = 0; i < start->devices && i < SPW_DEVICES_MAX; i++) {
        spw_record.counters[i] = start->counters(i);
    }
    spw_lock(&spw_locks.record);
    spw_record.number++;
    spw_record.threads = spw_record.steps = 0;
    spw_record.marks = (struct spw_record_marks){0};
    spw_record_sites_reset();
    spw_record.due = *start;
    spw_record.due.path = spw_record.due_path;
    spw_unlock(&spw_locks.record);
    atomic_store(&spw_record.events, true);
    atomic_store(&spw_record.uses, start->uses);
    if (!spw_record.at_exit) {
        spw_record.at_exit = atexit(at_exit) == 0;
    }
}

void spw_record_forget(void)
{
    atomic_store(&spw_record.uses, false);
    spw_record.due.path = NULL;
    if (atomic_exchange(&spw_record.events, false)) {
        spw_record_writer_forget();
    }
}
