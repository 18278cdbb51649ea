/* Choices that `run --fit` keeps: their names, their files, and the decisions about them. */
#include "cli/keep/key.h"
#include "cli/keep/merge.h"
#include "cli/keep/state.h"
#include "cli/keep/store.h"
#include "policy/policy.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"

#define MIB (UINT64_C(1) << 20)

/* ---- the key ---- */

static void test_command(void **context)
{
    char *one[] = {"python", "train.py", "8", NULL}, *other[] = {"python", "train.py", "16", NULL};
    char *split[] = {"python", "train.py8", NULL}, *swapped[] = {"train.py", "python", "8", NULL};
    uint64_t hash = spw_cli_keep_command(one, "/home/me");

    (void)context;
    assert_int_equal(hash, spw_cli_keep_command(one, "/home/me"));
    assert_int_not_equal(hash, spw_cli_keep_command(one, "/home/you"));
    assert_int_not_equal(hash, spw_cli_keep_command(other, "/home/me"));
    assert_int_not_equal(hash, spw_cli_keep_command(split, "/home/me"));
    assert_int_not_equal(hash, spw_cli_keep_command(swapped, "/home/me"));
}

static void test_device(void **context)
{
    uint64_t hash = spw_cli_keep_device("NVIDIA L4, 22478 MiB", "8GiB", NULL);

    (void)context;
    assert_int_equal(hash, spw_cli_keep_device("NVIDIA L4, 22478 MiB", "8GiB", NULL));
    assert_int_not_equal(hash, spw_cli_keep_device("NVIDIA T4, 22478 MiB", "8GiB", NULL));
    assert_int_not_equal(hash, spw_cli_keep_device("NVIDIA L4, 22478 MiB", NULL, NULL));
    assert_int_not_equal(hash, spw_cli_keep_device("NVIDIA L4, 22478 MiB", NULL, "8GiB"));
}

static void test_script(void **context)
{
    char script[128], program[128], found[PATH_MAX];
    char *by_python[] = {"python", "-u", script, "no.py", NULL};
    char *by_path[] = {program, "8", NULL};
    char *by_name[] = {"python", "-c", "pass", NULL};
    uint64_t first, second;

    (void)context;
    (void)snprintf(script, sizeof(script), "%s", in_folder("train.py"));
    (void)snprintf(program, sizeof(program), "%s", in_folder("train"));
    write_text(script, "a = 1\n");
    write_text(program, "#!/bin/sh\n");
    assert_true(spw_cli_keep_script(by_python, found, &first));
    assert_string_equal(found, script);
    write_text(script, "a = 2\n");
    assert_true(spw_cli_keep_script(by_python, found, &second));
    assert_int_not_equal(first, second);
    write_text(script, "a = 1\n");
    assert_true(spw_cli_keep_script(by_python, found, &second));
    assert_int_equal(first, second);
    assert_true(spw_cli_keep_script(by_path, found, &second));
    assert_string_equal(found, program);
    assert_int_not_equal(first, second);
    assert_false(spw_cli_keep_script(by_name, found, &second));
}

/* ---- the state ---- */

static const struct spw_cli_keep_state state = {
    .content = UINT64_C(0xfedcba9876543210),
    .budget_bytes = 1000 * MIB,
    .device_bytes = 900 * MIB,
    .spilled_bytes = 50 * MIB,
    .lacked_bytes = 7,
    .failures = 1,
    .code = 3,
};

static void test_state_as_text(void **context)
{
    struct spw_cli_keep_state read;
    char text[SPW_CLI_KEEP_STATE];

    (void)context;
    spw_cli_keep_state_write(&state, text);
    assert_true(spw_cli_keep_state_read(text, &read));
    assert_memory_equal(&read, &state, sizeof(state));
    text[strlen(text) - strlen(" code=3")] = '\0';
    assert_false(spw_cli_keep_state_read(text, &read));
    assert_false(spw_cli_keep_state_read("chosen: nothing", &read));
}

static enum spw_cli_keep_verdict judge(enum spw_cli_sim_outcome outcome, int code, uint64_t spilled,
                                       uint64_t refused, uint64_t *ret_lacked)
{
    const struct spw_cli_keep_run run = {outcome, code, spilled, refused};

    return spw_cli_keep_judge(&state, &run, ret_lacked);
}

static void test_judge(void **context)
{
    struct spw_cli_keep_state blind = state;
    const struct spw_cli_keep_run spilling = {SPW_CLI_SIM_SPILLS, 0, 500 * MIB, 0};
    uint64_t lacked;

    (void)context;
    assert_int_equal(judge(SPW_CLI_SIM_FITS, 0, 0, 0, &lacked), SPW_CLI_KEEP_GOOD);
    assert_int_equal(lacked, 0);
    /* 50 MiB are predicted, and 2 % of the budget are tolerated. */
    assert_int_equal(judge(SPW_CLI_SIM_SPILLS, 0, 70 * MIB, 0, &lacked), SPW_CLI_KEEP_GOOD);
    assert_int_equal(judge(SPW_CLI_SIM_SPILLS, 0, 71 * MIB, 0, &lacked), SPW_CLI_KEEP_SPILLED);
    assert_int_equal(lacked, 21 * MIB);
    assert_int_equal(judge(SPW_CLI_SIM_DOES_NOT_FIT, 1, 0, 9 * MIB, &lacked), SPW_CLI_KEEP_REFUSED);
    assert_int_equal(lacked, 9 * MIB);
    assert_int_equal(judge(SPW_CLI_SIM_CONTINUED, 0, 0, 9 * MIB, &lacked), SPW_CLI_KEEP_REFUSED);
    assert_int_equal(judge(SPW_CLI_SIM_FAILED, 1, 0, 0, &lacked), SPW_CLI_KEEP_FAILED);
    /* As it ended without the rules. */
    assert_int_equal(judge(SPW_CLI_SIM_FAILED, 3, 0, 0, &lacked), SPW_CLI_KEEP_GOOD);
    blind.device_bytes = 0;
    assert_int_equal(spw_cli_keep_judge(&blind, &spilling, &lacked), SPW_CLI_KEEP_GOOD);
}

static uint64_t ample(uint64_t measured, uint64_t held, uint64_t kernels, uint64_t spilling)
{
    const struct spw_cli_keep_times times = {measured, held, kernels, spilling};

    return spw_cli_keep_ample_ns(&times);
}

static void test_times(void **context)
{
    (void)context;
    assert_int_equal(ample(100, 30, 10, 20), 70);
    assert_int_equal(ample(100, 10, 10, 20), 80);
    assert_int_equal(ample(100, 30, 90, 20), 90);
    assert_int_equal(ample(100, 100, 10, 20), 10);
    assert_int_equal(ample(10, 30, 0, 20), 0);
    assert_int_equal(ample(0, 0, 10, 20), 10);
}

/* ---- the files ---- */

static const struct spw_cli_kept_for what = {
    .folder = "/home/me",
    .card = "NVIDIA L4, 22478 MiB",
    .limit = "8GiB",
    .script = "train.py",
};

/* Writes a choice to `path`, with one rule. */
static bool write_choice(const char *path, char why[SPW_CLI_KEEP_WHY])
{
    char *arguments[] = {"python", "train.py", NULL};
    struct spw_cli_kept_for of = what;
    static struct spw_cli_kept kept;

    of.arguments = arguments;
    kept.state = state;
    (void)snprintf(kept.path, sizeof(kept.path), "%s", path);
    (void)snprintf(kept.chosen, sizeof(kept.chosen), "all of it");
    return spw_cli_kept_write(&kept, &of,
                              cJSON_Parse("{\"rules\": [{\"name\": \"a\", \"action\": {}}]}"), why);
}

static void path_in(const char *place, char path[PATH_MAX])
{
    assert_true(snprintf(path, PATH_MAX, "%s/1-2.json", place) < PATH_MAX);
}

static void test_file(void **context)
{
    char place[PATH_MAX], path[PATH_MAX], link[PATH_MAX], why[SPW_CLI_KEEP_WHY];
    static struct spw_cli_kept kept;
    struct stat status;

    (void)context;
    assert_true(spw_cli_keep_folder(true, place, why));
    path_in(place, path);
    assert_false(spw_cli_kept_read(path, &kept, why));
    assert_string_equal(why, "");
    assert_true(write_choice(path, why));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_true(spw_cli_kept_read(path, &kept, why));
    assert_memory_equal(&kept.state, &state, sizeof(state));
    assert_string_equal(kept.chosen, "all of it");
    assert_true(kept.has_rules);
    /* Files that others may have written. */
    assert_int_equal(chmod(path, 0622), 0);
    assert_false(spw_cli_kept_read(path, &kept, why));
    assert_non_null(strstr(why, "others may write it"));
    assert_int_equal(chmod(path, 0600), 0);
    (void)snprintf(link, sizeof(link), "%.4000s/link", place);
    assert_int_equal(symlink(path, link), 0);
    assert_false(spw_cli_kept_read(link, &kept, why));
    assert_non_null(strstr(why, "is a link"));
    /* Files that are not what was written. */
    write_text(path, "{\"version\": 1, \"rules\": []}");
    assert_false(spw_cli_kept_read(path, &kept, why));
    assert_non_null(strstr(why, "is no kept choice"));
    write_text(path, "{\"version\": 1, \"rule\": []}");
    assert_false(spw_cli_kept_read(path, &kept, why));
    assert_non_null(strstr(why, "\"rule\""));
}

/* A folder that is a link, or that others may write or own, is not used. */
static void test_hostile_folders(void **context)
{
    char place[PATH_MAX], why[SPW_CLI_KEEP_WHY];
    const char *cache = in_folder("spillway"), *elsewhere = in_folder("elsewhere");

    (void)context;
    assert_true(spw_cli_keep_folder(true, place, why));
    assert_int_equal(chmod(place, 0777), 0);
    assert_false(spw_cli_keep_folder(true, place, why));
    assert_non_null(strstr(why, "others may write it"));
    assert_int_equal(chmod(place, 0700), 0);
    assert_int_equal(rename(place, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, place), 0);
    assert_false(spw_cli_keep_folder(true, place, why));
    assert_non_null(strstr(why, "is a link"));
    assert_int_equal(unlink(place), 0);
    assert_true(spw_cli_keep_folder(true, place, why));
    assert_int_equal(chmod(cache, 0770), 0);
    assert_false(spw_cli_keep_folder(true, place, why));
    assert_int_equal(chmod(cache, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(cache, 65534, 65534), 0);
        assert_false(spw_cli_keep_folder(true, place, why));
        assert_non_null(strstr(why, "belongs to another user"));
        assert_int_equal(chown(cache, 0, 0), 0);
    }
    assert_true(spw_cli_keep_folder(true, place, why));
}

static void check_without_home(void)
{
    char place[PATH_MAX], why[SPW_CLI_KEEP_WHY];

    CHECK(unsetenv("XDG_CACHE_HOME") == 0 && setenv("HOME", "relative", 1) == 0);
    CHECK(!spw_cli_keep_folder(true, place, why));
    CHECK(strstr(why, "there is no cache folder") != NULL);
}

static void test_without_home(void **context)
{
    (void)context;
    in_child(check_without_home);
}

static void count(const char *path, void *context)
{
    (void)path;
    (*(int *)context)++;
}

static void test_each(void **context)
{
    static const char *const names[] = {"00000000000000aa-01.json", "00000000000000aa-02.json.tmp",
                                        "00000000000000ab-01.json"};
    char place[PATH_MAX], path[PATH_MAX + 64], why[SPW_CLI_KEEP_WHY];
    int found = 0;

    (void)context;
    assert_true(spw_cli_keep_folder(true, place, why));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", place, names[i]);
        write_text(path, "");
    }
    spw_cli_kept_each(place, 0xaa, count, &found);
    assert_int_equal(found, 2);
    spw_cli_kept_each(place, 0xac, count, &found);
    assert_int_equal(found, 2);
    spw_cli_kept_each(place, 0, count, &found);
    assert_int_equal(found, 5);
}

/* ---- the policies of ranks ---- */

#define HALF  "\"action\": {\"host_share\": \"50%\", \"movable\": false}"
#define MOST  "\"action\": {\"host_share\": \"80%\", \"movable\": false}"
#define WHOLE "\"action\": {\"placement\": \"host\"}"
#define RULE(number, site, action)                                                                 \
    "{\"name\": \"" number ".a\", \"match\": {\"site\": \"" site "\"}, " action "}"
#define RULES(rules) cJSON_Parse("{\"rules\": [" rules "]}")

static void check_merged(cJSON *one, cJSON *other, cJSON *expected)
{
    cJSON *merged = spw_cli_keep_merge(one, other);
    char *text = cJSON_PrintUnformatted(merged), *wanted = cJSON_PrintUnformatted(expected);

    assert_string_equal(text, wanted);
    cJSON_free(text);
    cJSON_free(wanted);
    cJSON_Delete(merged);
    cJSON_Delete(expected);
}

static void test_merge(void **context)
{
    (void)context;
    assert_null(spw_cli_keep_merge(NULL, NULL));
    check_merged(RULES(RULE("1", "f", HALF)), NULL, RULES(RULE("1", "f", HALF)));
    check_merged(NULL, RULES(RULE("1", "f", HALF)), RULES(RULE("1", "f", HALF)));
    check_merged(RULES(RULE("1", "f", HALF)), RULES(RULE("1", "f", MOST)),
                 RULES(RULE("1", "f", MOST)));
    check_merged(RULES(RULE("1", "f", WHOLE)), RULES(RULE("1", "f", MOST)),
                 RULES(RULE("1", "f", WHOLE)));
    check_merged(RULES(RULE("1", "f", HALF)), RULES(RULE("1", "g", MOST) "," RULE("2", "f", WHOLE)),
                 RULES(RULE("1", "f", WHOLE) "," RULE("2", "g", MOST)));
    /* The first rule that matches decides, so the one that places more comes first. */
    check_merged(RULES(RULE("1", "f", HALF)), RULES(RULE("1", "g", MOST)),
                 RULES(RULE("1", "g", MOST) "," RULE("2", "f", HALF)));
}

static void test_merge_of_too_many_rules(void **context)
{
    cJSON *policy = RULES(""), *rules = cJSON_GetObjectItem(policy, "rules");

    (void)context;
    for (int i = 0; i < SPW_POLICY_RULES; i++) {
        cJSON *match = cJSON_CreateObject(), *rule = cJSON_CreateObject();

        assert_non_null(cJSON_AddNumberToObject(match, "device", i));
        assert_true(cJSON_AddItemToObject(rule, "match", match));
        assert_true(cJSON_AddItemToArray(rules, rule));
    }
    assert_null(spw_cli_keep_merge(policy, RULES(RULE("1", "f", HALF))));
}

static int set_up(void **context)
{
    (void)context;
    return mkdtemp(folder) != NULL ? setenv("XDG_CACHE_HOME", folder, 1) : -1;
}

static int tear_down(void **context)
{
    char command[128];

    (void)context;
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command),      cmocka_unit_test(test_device),
        cmocka_unit_test(test_script),       cmocka_unit_test(test_state_as_text),
        cmocka_unit_test(test_judge),        cmocka_unit_test(test_times),
        cmocka_unit_test(test_file),         cmocka_unit_test(test_hostile_folders),
        cmocka_unit_test(test_without_home), cmocka_unit_test(test_each),
        cmocka_unit_test(test_merge),        cmocka_unit_test(test_merge_of_too_many_rules),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
