#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/usage/check.h"

#include "common/utf8.h"
#include "system/create.h"

#include <stdio.h>
#include <string.h>

void spw_cli_check_print(const struct spw_cli_check *check)
{
    for (size_t i = 0; i < check->finding_count; i++) {
        const struct spw_cli_finding *finding = &check->findings[i];

        if (!finding->holds) {
            spw_cli_print(stdout, "%s: device %d: %s\n", check->usage->path, finding->device,
                          finding->text);
        }
    }
}

void spw_cli_check_print_json(const struct spw_cli_check *check)
{
    cJSON *root = cJSON_CreateObject(), *list;

    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "file", check->usage->path);
    cJSON_AddBoolToObject(root, "passed", spw_cli_check_failures(check) == 0);
    list = cJSON_AddArrayToObject(root, "checks");
    for (size_t i = 0; i < check->finding_count; i++) {
        const struct spw_cli_finding *finding = &check->findings[i];
        cJSON *row = cJSON_CreateObject();

        cJSON_AddStringToObject(row, "name", finding->name);
        cJSON_AddNumberToObject(row, "device", finding->device);
        cJSON_AddBoolToObject(row, "passed", finding->holds);
        cJSON_AddBoolToObject(row, "known", finding->known);
        spw_cli_json_add(row, "bytes", finding->bytes);
        spw_cli_json_add(row, "limit_bytes", finding->limit);
        cJSON_AddStringToObject(row, "text", finding->text);
        cJSON_AddStringToObject(row, "site", finding->site);
        cJSON_AddItemToArray(list, row);
    }
    spw_cli_json_print(root, /* one_line */ false);
}

/* ---- JUnit ---- */

static void put(FILE *out, const char *text)
{
    static const struct {
        char character;
        const char *name;
    } names[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&apos;"}};

    for (; *text != '\0'; text++) {
        const char *name = NULL;

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
            name = names[i].character == *text ? names[i].name : name;
        }
        if (name != NULL) {
            fputs(name, out);
        } else {
            fputc(*text, out);
        }
    }
}

/* Writes text of unknown origin as XML, which allows only UTF-8 without control characters. */
static void put_plain(FILE *out, const char *text)
{
    char plain[4096];

    snprintf(plain, sizeof(plain), "%s", text);
    spw_utf8_plain(plain, /* keep */ "");
    put(out, plain);
}

static void put_case(FILE *out, const struct spw_cli_finding *finding)
{
    fputs("    <testcase classname=\"spillway.check\" name=\"", out);
    put_plain(out, finding->name);
    fprintf(out, ", device %d\"", finding->device);
    if (finding->holds) {
        fputs("/>\n", out);
        return;
    }
    fprintf(out, ">\n      <failure type=\"%s\" message=\"", finding->known ? "limit" : "unknown");
    put_plain(out, finding->text);
    fputs("\"/>\n    </testcase>\n", out);
}

bool spw_cli_check_write_junit(const struct spw_cli_check *check, const char *path)
{
    FILE *out = spw_create_stream(path);
    bool failed;

    if (out == NULL) {
        return false;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"", out);
    put_plain(out, check->usage->path);
    fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n", check->finding_count,
            spw_cli_check_failures(check));
    for (size_t i = 0; i < check->finding_count; i++) {
        put_case(out, &check->findings[i]);
    }
    fputs("  </testsuite>\n</testsuites>\n", out);
    failed = ferror(out) != 0;
    return fclose(out) == 0 && !failed;
}
