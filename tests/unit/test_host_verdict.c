/* What a verdict about host memory depends on: another start of the machine, another driver or
 * device, and other rights of the process are another key. */
#include "driver/host_verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The first line of a file, without its end. */
static const char *line_of(const char *path, char line[256])
{
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    assert_non_null(fgets(line, 256, file));
    (void)fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* The value of a field of /proc/self/status. */
static const char *status_of(const char *name, char line[256])
{
    FILE *file = fopen("/proc/self/status", "re");
    size_t length = strlen(name);
    bool found = false;

    assert_non_null(file);
    while (!found && fgets(line, 256, file) != NULL) {
        found = strncmp(line, name, length) == 0;
    }
    (void)fclose(file);
    assert_true(found);
    line[strcspn(line, "\n")] = '\0';
    return line + length + strspn(line + length, ":\t");
}

static void test_key(void **state)
{
    char key[SPW_VERDICT_KEY], other[SPW_VERDICT_KEY], expected[SPW_VERDICT_KEY];
    char boot[256], rights[256], filter[256], nodes[256];

    spw_driver_host_verdict_key("one", 13000, key);
    snprintf(expected, sizeof(expected), " boot=%s rights=%s filter=%s nodes=%s",
             line_of("/proc/sys/kernel/random/boot_id", boot), status_of("CapEff", rights),
             status_of("Seccomp", filter), status_of("Mems_allowed_list", nodes));
    assert_non_null(strstr(key, expected));
    assert_non_null(strstr(key, " device=one driver=13000/"));
    assert_null(strchr(key, '\n'));
    spw_driver_host_verdict_key("one", 13000, other);
    assert_string_equal(other, key);
    spw_driver_host_verdict_key("two", 13000, other);
    assert_string_not_equal(other, key);
    spw_driver_host_verdict_key("one", 13010, other);
    assert_string_not_equal(other, key);
}

/* A verdict is kept for one key; both kinds are read as they were written. */
static void test_kept(void **state)
{
    const CUmemLocation node = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 3};
    char folder[] = "/tmp/verdict-XXXXXX", command[64];
    CUmemLocation place;
    bool works;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("SPILLWAY_RUN_DIR", folder, 1), 0);
    assert_false(spw_driver_host_verdict_read(/* simulated */ true, "key", &works, &place));
    for (int written = 0; written < 2; written++) {
        spw_driver_host_verdict_write(/* simulated */ true, "key", written != 0, node);
        works = written == 0;
        assert_true(spw_driver_host_verdict_read(/* simulated */ true, "key", &works, &place));
        assert_int_equal(works, written);
        assert_int_equal(place.type, node.type);
        assert_int_equal(place.id, node.id);
    }
    assert_false(spw_driver_host_verdict_read(/* simulated */ true, "other", &works, &place));
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
