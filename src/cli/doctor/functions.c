#include "cli/doctor/tables.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* A function that spillway intercepts, and the version of CUDA that introduced it. */
static const struct {
    const char *symbol;
    int since;
} intercepted[] = {
#define SPW_FN(symbol, base, since, ...) {#symbol, since},
#include "driver/functions.def"
};

static const char *const called[] = {
#define SPW_CALL(symbol) #symbol,
#include "driver/calls.def"
};

enum { INTERCEPTED = sizeof(intercepted) / sizeof(*intercepted) };
enum { CALLED = sizeof(called) / sizeof(*called) };

/* Names, separated by commas. If there is no room for a name, the name is only counted. */
struct names {
    char text[SPW_CLI_REPORT_CELL];
    int count;
    int left_out;
};

static void add_name(struct names *names, const char *name)
{
    static const size_t room_for_rest = 16;
    size_t used = strlen(names->text);

    names->count++;
    if (used + strlen(name) + 2 > sizeof(names->text) - room_for_rest) {
        names->left_out++;
        return;
    }
    snprintf(names->text + used, sizeof(names->text) - used, "%s%s", used > 0 ? ", " : "", name);
}

static const char *finish_names(struct names *names)
{
    size_t used = strlen(names->text);

    if (names->left_out > 0) {
        snprintf(names->text + used, sizeof(names->text) - used, " and %d more", names->left_out);
    }
    return names->text;
}

/* Returns the lowest CUDA version above `after` that introduced a function which the driver lacks;
 * 0: none. */
static int next_lacking(const bool *has, int after)
{
    int version = 0;

    for (int i = 0; i < INTERCEPTED; i++) {
        if (!has[i] && intercepted[i].since > after &&
            (version == 0 || intercepted[i].since < version)) {
            version = intercepted[i].since;
        }
    }
    return version;
}

static void report_lacking(const bool *has, struct spw_cli_report *report)
{
    for (int version = next_lacking(has, 0); version != 0; version = next_lacking(has, version)) {
        struct names names = {0};

        for (int i = 0; i < INTERCEPTED; i++) {
            if (!has[i] && intercepted[i].since == version) {
                add_name(&names, intercepted[i].symbol);
            }
        }
        spw_cli_report_row(report, "lacking, of CUDA %d.%d\t%d\t%s", version / 1000,
                           version % 1000 / 10, names.count, finish_names(&names));
    }
}

void spw_cli_doctor_functions(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    static const char *const columns[] = {"functions", "count", "names", NULL};
    struct names lacking = {0};
    bool has[INTERCEPTED];
    int live = 0;

    for (int i = 0; i < INTERCEPTED; i++) {
        has[i] = dlsym(cuda->library, intercepted[i].symbol) != NULL;
        live += has[i];
    }
    for (int i = 0; i < CALLED; i++) {
        if (dlsym(cuda->library, called[i]) == NULL) {
            add_name(&lacking, called[i]);
        }
    }
    spw_cli_report_table(report, "functions", "Functions that spillway intercepts", columns);
    spw_cli_report_row(report, "in this driver\t%d\tof %d", live, INTERCEPTED);
    report_lacking(has, report);
    if (lacking.count > 0) {
        spw_cli_report_row(report, "lacking, of those that spillway calls\t%d\t%s", lacking.count,
                           finish_names(&lacking));
    }
}
