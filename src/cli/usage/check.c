#include "cli/usage/check.h"

#include "cli/console/messages.h"
#include "cli/report/growth.h"
#include "cli/usage/difference.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static void name_limit(const struct spw_cli_limit *limit, char *ret_name)
{
    static const char *const flags[] = {
        [SPW_CLI_LIMIT_PEAK] = "--max-peak",     [SPW_CLI_LIMIT_SPILL] = "--max-spill",
        [SPW_CLI_LIMIT_GROWTH] = "--max-growth", [SPW_CLI_LIMIT_INCREASE] = "--max-increase",
        [SPW_CLI_LIMIT_SITE] = "--max-site",     [SPW_CLI_LIMIT_CATEGORY] = "--max-category",
    };
    const char *of = limit->kind == SPW_CLI_LIMIT_SITE       ? limit->pattern
                     : limit->kind == SPW_CLI_LIMIT_CATEGORY ? spw_cli_category_key(limit->category)
                                                             : "";

    snprintf(ret_name, SPW_CLI_LIMIT_TEXT, "%s %.300s%s%s%s", flags[limit->kind], of,
             *of != '\0' ? "=" : "", spw_cli_size(limit->bytes),
             limit->kind == SPW_CLI_LIMIT_GROWTH ? "/step" : "");
}

static void cannot(struct spw_cli_finding *finding, const char *why)
{
    finding->known = false;
    snprintf(finding->text, sizeof(finding->text), "%.180s: cannot be checked: %.300s",
             finding->name, why);
}

static void blame(struct spw_cli_finding *finding, const char *label)
{
    snprintf(finding->site, sizeof(finding->site), "%s", label);
}

static void add_most(struct spw_cli_finding *finding, const char *label, const char *sign,
                     uint64_t bytes)
{
    size_t used = strlen(finding->text);

    blame(finding, label);
    snprintf(finding->text + used, sizeof(finding->text) - used, "; most by %s: %s%s", label, sign,
             spw_cli_size(bytes));
}

/* ---- limits ---- */

/* Returns the line with the largest figure, or NULL if all figures are 0. */
static const struct spw_cli_usage_line *
largest(const struct spw_cli_device_usage *device,
        uint64_t (*figure)(const struct spw_cli_usage_line *line))
{
    const struct spw_cli_usage_line *most = NULL;

    for (size_t i = 0; i < device->line_count; i++) {
        const struct spw_cli_usage_line *line = &device->lines[i];

        most = figure(line) > (most != NULL ? figure(most) : 0) ? line : most;
    }
    return most;
}

static uint64_t at_peak(const struct spw_cli_usage_line *line)
{
    return line->at_peak;
}

static uint64_t growth(const struct spw_cli_usage_line *line)
{
    return line->growth;
}

static void test_peak(const struct spw_cli_device_usage *device, struct spw_cli_finding *finding)
{
    const struct spw_cli_usage_line *line = largest(device, at_peak);

    finding->bytes = device->peak;
    snprintf(finding->text, sizeof(finding->text), "peak %s, at most %s allowed",
             spw_cli_size(device->peak), spw_cli_size(finding->limit));
    if (line != NULL) {
        add_most(finding, line->label, "", line->at_peak);
    }
}

static void test_spill(const struct spw_cli_device_usage *device, struct spw_cli_finding *finding)
{
    finding->bytes = device->spilled;
    snprintf(finding->text, sizeof(finding->text),
             "%s went to the host, at most %s allowed; up to %s were there at a time",
             spw_cli_size(device->spilled), spw_cli_size(finding->limit),
             spw_cli_size(device->host_peak));
}

static void test_growth(const struct spw_cli_usage *usage,
                        const struct spw_cli_device_usage *device, struct spw_cli_finding *finding)
{
    const struct spw_cli_usage_line *line = largest(device, growth);
    char why[128];

    if (usage->steps < SPW_CLI_GROWTH_STEPS) {
        snprintf(why, sizeof(why), "%zu %s were found, and %d are needed", usage->steps,
                 usage->steps_kind, SPW_CLI_GROWTH_STEPS);
        cannot(finding, why);
        return;
    }
    finding->bytes = device->growth;
    snprintf(finding->text, sizeof(finding->text),
             "memory grows by %s a step (%zu %s), at most %s allowed", spw_cli_size(device->growth),
             usage->steps, usage->steps_kind, spw_cli_size(finding->limit));
    if (line != NULL) {
        add_most(finding, line->label, "", line->growth);
    }
}

static void test_increase(const struct spw_cli_device_usage *before,
                          const struct spw_cli_device_usage *after, struct spw_cli_finding *finding)
{
    uint64_t old = before != NULL ? before->peak : 0;
    struct spw_cli_pair *pairs;
    size_t count;

    finding->bytes = after->peak > old ? after->peak - old : 0;
    snprintf(finding->text, sizeof(finding->text),
             "the peak rose by %s from %s to %s, at most %s allowed", spw_cli_size(finding->bytes),
             spw_cli_size(old), spw_cli_size(after->peak), spw_cli_size(finding->limit));
    if (!spw_cli_pair_lines(before, after, &pairs, &count)) {
        return;
    }
    for (size_t i = 0; i < count && finding->site[0] == '\0'; i++) {
        int64_t change = spw_cli_pair_change(&pairs[i]);

        if (change > 0) {
            add_most(finding, spw_cli_pair_label(&pairs[i]), "+", (uint64_t)change);
        }
    }
    free(pairs);
}

static bool matches(const struct spw_cli_usage_line *line, const char *pattern)
{
    char part[SPW_CLI_LIMIT_TEXT];

    snprintf(part, sizeof(part), "*%.500s*", pattern);
    return fnmatch(part, line->label, FNM_NOESCAPE) == 0 ||
           fnmatch(part, line->text, FNM_NOESCAPE) == 0;
}

/* Tests the sum of all matching call sites at the device's peak. If the highest peak of a single
 * call site is greater, tests this peak instead. */
static void test_site(const struct spw_cli_device_usage *device, const char *pattern,
                      struct spw_cli_finding *finding)
{
    const struct spw_cli_usage_line *most = NULL;
    uint64_t together = 0;
    size_t count = 0;

    for (size_t i = 0; i < device->line_count; i++) {
        const struct spw_cli_usage_line *line = &device->lines[i];

        if (matches(line, pattern)) {
            count++;
            together += line->at_peak;
            most = most == NULL || line->peak > most->peak ? line : most;
        }
    }
    finding->bytes = most != NULL && most->peak > together ? most->peak : together;
    if (most == NULL) {
        snprintf(finding->text, sizeof(finding->text), "no call site matches %.300s", pattern);
        return;
    }
    blame(finding, most->label);
    snprintf(finding->text, sizeof(finding->text),
             "%s (%zu with %.200s) held %s, at most %s allowed", most->label, count, pattern,
             spw_cli_size(finding->bytes), spw_cli_size(finding->limit));
}

static void test_category(const struct spw_cli_device_usage *device, enum spw_cli_category category,
                          struct spw_cli_finding *finding)
{
    finding->bytes = device->most[category];
    snprintf(finding->text, sizeof(finding->text),
             "%s held %s, at most %s allowed (%s were unknown at the peak)",
             spw_cli_category_name(category), spw_cli_size(finding->bytes),
             spw_cli_size(finding->limit), spw_cli_size(device->at_peak[SPW_CLI_UNKNOWN]));
}

/* ---- all ---- */

/* Returns the reason why the file has no figure for a limit, or NULL if it has a figure. */
static const char *lack(const struct spw_cli_usage *usage, const struct spw_cli_limit *limit)
{
    if (limit->kind == SPW_CLI_LIMIT_SITE && !usage->has_sites) {
        return "the file has no call sites (SPILLWAY_SITES was off)";
    }
    if (limit->kind == SPW_CLI_LIMIT_CATEGORY && !usage->has_categories) {
        return "categories are known in tensor mode only";
    }
    return usage->gap[0] != '\0' ? usage->gap : NULL;
}

static void test(const struct spw_cli_check *check, const struct spw_cli_limit *limit, int ordinal,
                 struct spw_cli_finding *finding)
{
    const struct spw_cli_device_usage *device = &check->usage->devices[ordinal];
    const char *why = lack(check->usage, limit);

    *finding = (struct spw_cli_finding){.device = ordinal, .known = true, .limit = limit->bytes};
    name_limit(limit, finding->name);
    if (why != NULL) {
        cannot(finding, why);
        return;
    }
    switch (limit->kind) {
    case SPW_CLI_LIMIT_PEAK:
        test_peak(device, finding);
        break;
    case SPW_CLI_LIMIT_SPILL:
        test_spill(device, finding);
        break;
    case SPW_CLI_LIMIT_GROWTH:
        test_growth(check->usage, device, finding);
        break;
    case SPW_CLI_LIMIT_INCREASE:
        test_increase(ordinal < check->base->device_count ? &check->base->devices[ordinal] : NULL,
                      device, finding);
        break;
    case SPW_CLI_LIMIT_SITE:
        test_site(device, limit->pattern, finding);
        break;
    case SPW_CLI_LIMIT_CATEGORY:
        test_category(device, limit->category, finding);
        break;
    }
    finding->holds = finding->known && finding->bytes <= finding->limit;
}

bool spw_cli_check_run(struct spw_cli_check *check)
{
    size_t devices = (size_t)check->usage->device_count;

    check->finding_count = 0;
    check->findings = calloc(check->limit_count * (devices + 1), sizeof(*check->findings));
    if (check->findings == NULL) {
        return false;
    }
    for (size_t i = 0; i < check->limit_count; i++) {
        for (int ordinal = 0; ordinal < check->usage->device_count; ordinal++) {
            /* Device 0 is tested even if it was not used. Other unused devices are not tested. */
            if (check->usage->devices[ordinal].used || ordinal == 0) {
                test(check, &check->limits[i], ordinal, &check->findings[check->finding_count++]);
            }
        }
    }
    return true;
}

size_t spw_cli_check_failures(const struct spw_cli_check *check)
{
    size_t count = 0;

    for (size_t i = 0; i < check->finding_count; i++) {
        count += !check->findings[i].holds;
    }
    return count;
}

void spw_cli_check_free(struct spw_cli_check *check)
{
    free(check->findings);
    check->findings = NULL;
    check->finding_count = 0;
}
