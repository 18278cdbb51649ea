#include "sim/driver/core/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/utf8.h"
#include "sim/driver/core/clock.h"
#include "sim/driver/core/control.h"
#include "sim/driver/core/errors.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/say.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/core/tables.h"
#include "system/create.h"
#include "system/fd.h"

#define SIM_MAX_RULES 32

struct fault_rule {
    enum sim_fn fn;
    unsigned long long at; /* the first call that fails */
    bool onwards;          /* every later call fails too */
    CUresult code;
};

static unsigned long long counts[SIM_FN_COUNT];
static struct {
    unsigned long long chunks, bytes;
} covered[SIM_FN_COUNT];
static struct fault_rule rules[SIM_MAX_RULES];
static unsigned int rule_count;
static bool rule_exists[SIM_FN_COUNT]; /* spares most calls a search */

static int log_fd = -1;
static unsigned long long log_lines;
static bool started;

/* The details of the call in progress on this thread. Each thread has its own details, because the
 * body of a function may release the lock. */
static _Thread_local char note_text[768];

/* The start of the call in progress on this thread, in virtual time. */
static _Thread_local uint64_t call_began;

static bool find_function(const char *name, size_t length, enum sim_fn *ret_fn)
{
    for (unsigned int i = 0; i < SIM_FN_COUNT; i++) {
        if (strlen(sim_fn_names[i]) == length && memcmp(sim_fn_names[i], name, length) == 0) {
            *ret_fn = (enum sim_fn)i;
            return true;
        }
    }
    return false;
}

/* NAME:N[+][:CODE] */
static bool parse_rule(const char *text, struct fault_rule *ret_rule)
{
    struct fault_rule rule = {.code = CUDA_ERROR_OUT_OF_MEMORY};
    const char *colon = strchr(text, ':');
    char *rest;

    if (colon == NULL || !find_function(text, (size_t)(colon - text), &rule.fn) || colon[1] < '0' ||
        colon[1] > '9') {
        return false;
    }
    rule.at = strtoull(colon + 1, &rest, 10);
    if (rule.at == 0) {
        return false;
    }
    rule.at += counts[rule.fn];
    if (*rest == '+') {
        rule.onwards = true;
        rest++;
    }
    if (*rest == ':' && !sim_error_parse(rest + 1, &rule.code)) {
        return false;
    }
    if (*rest != ':' && *rest != '\0') {
        return false;
    }
    *ret_rule = rule;
    return true;
}

/* Replaces the rules with the rules in a list. Malformed rules are named on stderr and left out. */
static bool set_rules(const char *list)
{
    bool well_formed = true;
    char *copy, *text, *position;

    rule_count = 0;
    memset(rule_exists, 0, sizeof(rule_exists));
    if (list == NULL || list[0] == '\0') {
        return true;
    }
    copy = strdup(list);
    if (copy == NULL) {
        return false;
    }
    for (text = strtok_r(copy, ",", &position); text != NULL;
         text = strtok_r(NULL, ",", &position)) {
        if (rule_count < SIM_MAX_RULES && parse_rule(text, &rules[rule_count])) {
            rule_exists[rules[rule_count].fn] = true;
            rule_count++;
            continue;
        }
        well_formed = false;
        sim_say("SPILLWAY_SIM_FAIL=%s: expected NAME:N[+][:CODE] with the name of a "
                "driver function, such as cuMemCreate:3",
                text);
    }
    free(copy);
    return well_formed;
}

static void start(void)
{
    const struct sim_options *options = sim_options();

    started = true;
    set_rules(options->fail);
    if (options->log_path != NULL) {
        log_fd = spw_create_open(options->log_path, O_WRONLY | O_APPEND | O_CREAT, 0666);
        if (log_fd < 0) {
            sim_say("SPILLWAY_SIM_LOG=%s: cannot be written: %s", options->log_path,
                    spw_create_problem(options->log_path));
        }
    }
}

CUresult sim_calls_begin(enum sim_fn fn)
{
    unsigned long long count;

    if (!started) {
        start();
    }
    count = ++counts[fn];
    note_text[0] = '\0';
    call_began = sim_clock_now();
    if (!rule_exists[fn]) {
        return CUDA_SUCCESS;
    }
    for (unsigned int i = 0; i < rule_count; i++) {
        if (rules[i].fn == fn &&
            (count == rules[i].at || (rules[i].onwards && count > rules[i].at))) {
            return rules[i].code;
        }
    }
    return CUDA_SUCCESS;
}

bool sim_calls_logged(void)
{
    return log_fd >= 0;
}

void sim_calls_log(const char *line)
{
    char text[1024];
    int length;

    if (log_fd < 0) {
        return;
    }
    length = snprintf(text, sizeof(text), "%d %ld %llu %s\n", (int)getpid(), syscall(SYS_gettid),
                      ++log_lines, line);
    if (length >= (int)sizeof(text)) {
        length = (int)sizeof(text);
        text[length - 1] = '\n';
    }
    if (!spw_fd_write(log_fd, text, (size_t)length)) {
        /* A full disk must not disturb the program; the log just ends. */
        close(log_fd);
        log_fd = -1;
    }
}

void sim_calls_count_chunks(enum sim_fn fn, uint64_t chunks, uint64_t bytes)
{
    covered[fn].chunks += chunks;
    covered[fn].bytes += bytes;
}

void sim_calls_end(enum sim_fn fn, CUresult result)
{
    char line[900];
    int length;

    if (log_fd < 0) {
        return;
    }
    length = snprintf(line, sizeof(line), "%s = %d%s%s", sim_fn_names[fn], (int)result,
                      note_text[0] != '\0' ? " " : "", note_text);
    if (sim_clock_is_on()) {
        snprintf(line + length, sizeof(line) - (size_t)length, " t=%" PRIu64 "..%" PRIu64,
                 call_began, sim_clock_now());
    }
    sim_calls_log(line);
}

void sim_note(const char *format, ...)
{
    size_t used;
    va_list args;

    if (log_fd < 0) {
        return;
    }
    used = strlen(note_text);
    if (used > 0 && used + 1 < sizeof(note_text)) {
        note_text[used++] = ' ';
    }
    va_start(args, format);
    vsnprintf(note_text + used, sizeof(note_text) - used, format, args);
    va_end(args);
}

void sim_warn_once(bool *once, const char *format, ...)
{
    char text[400];
    va_list args;
    int length;

    if (once != NULL && *once) {
        return;
    }
    if (once != NULL) {
        *once = true;
    }
    length = snprintf(text, sizeof(text), "%s", SIM_SAY_PREFIX);
    va_start(args, format);
    vsnprintf(text + length, sizeof(text) - (size_t)length - 1, format, args);
    va_end(args);
    spw_utf8_plain(text, /* keep */ "");
    sim_calls_log(text);
    sim_say("%s", text + strlen(SIM_SAY_PREFIX));
}

SIM_EXPORT unsigned long long spillway_sim_time(void)
{
    unsigned long long now;

    sim_lock();
    now = sim_clock_is_on() ? sim_clock_now() : 0;
    sim_unlock();
    return now;
}

SIM_EXPORT int spillway_sim_has_time(void)
{
    return sim_clock_is_on();
}

SIM_EXPORT int spillway_sim_version(void)
{
    return 1;
}

SIM_EXPORT unsigned long long spillway_sim_calls(const char *name)
{
    unsigned long long count = 0;
    enum sim_fn fn;

    sim_lock();
    if (name != NULL && find_function(name, strlen(name), &fn)) {
        count = counts[fn];
    }
    sim_unlock();
    return count;
}

SIM_EXPORT unsigned long long spillway_sim_chunks(const char *name, unsigned long long *ret_bytes)
{
    unsigned long long count = 0;
    enum sim_fn fn;

    sim_lock();
    *ret_bytes = 0;
    if (name != NULL && find_function(name, strlen(name), &fn)) {
        count = covered[fn].chunks;
        *ret_bytes = covered[fn].bytes;
    }
    sim_unlock();
    return count;
}

SIM_EXPORT void spillway_sim_reset_calls(void)
{
    sim_lock();
    for (unsigned int i = 0; i < rule_count; i++) {
        unsigned long long past = counts[rules[i].fn];

        rules[i].at = rules[i].at > past ? rules[i].at - past : 0;
    }
    memset(counts, 0, sizeof(counts));
    memset(covered, 0, sizeof(covered));
    sim_unlock();
}

SIM_EXPORT int spillway_sim_fail(const char *list)
{
    bool well_formed;

    sim_lock();
    if (!started) {
        start();
    }
    well_formed = set_rules(list);
    sim_unlock();
    return well_formed ? 0 : -1;
}
