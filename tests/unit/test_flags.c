#include "cli/launch/flags.h"

#include "child.h"

#include <stdlib.h>
#include <string.h>

static char errors[] = "/tmp/spillway-flags-XXXXXX";

/* Parses the arguments given; complaints go to the file `errors`. */
#define PARSE(starter, flags, ...) parse_list(starter, flags, (char *[]){__VA_ARGS__, NULL})

static bool parse_list(enum spw_cli_starter starter, struct spw_cli_flags *flags, char **given)
{
    static char *arguments[16]; /* flags->command points into it */
    int count = 0;

    redirect_errors(errors);
    while (given[count] != NULL) {
        arguments[count] = given[count];
        count++;
    }
    arguments[count] = NULL;
    return spw_cli_flags_parse(count, arguments, starter, flags);
}

static const char *variable(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? text : "(not set)";
}

static void names(void)
{
    char name[SPW_CLI_FLAG_NAME];

    CHECK(strcmp(spw_cli_flag_name(SPW_OPT_SPILLWAY, name), "") == 0);
    CHECK(strcmp(spw_cli_flag_name(SPW_OPT_SPILLWAY_HOST_LIMIT, name), "host-limit") == 0);
    CHECK(strcmp(spw_cli_flag_name(SPW_OPT_SPILLWAY_LOG, name), "log") == 0);
    CHECK(strcmp(spw_cli_flag_name(SPW_OPT_SPILLWAY_SIM_LOG, name), "sim-log") == 0);
    CHECK(strcmp(spw_cli_flag_name(SPW_OPT_SPILLWAY_SIM_HOST_MEMORY, name), "host-memory") == 0);
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        for (int j = 0; j < i; j++) {
            char other[SPW_CLI_FLAG_NAME];

            CHECK(strcmp(spw_cli_flag_name((enum spw_option)i, name),
                         spw_cli_flag_name((enum spw_option)j, other)) != 0);
        }
    }
}

static void test_names(void **state)
{
    in_child(names);
}

static void take(void)
{
    struct spw_cli_flags flags;

    setenv("SPILLWAY_LIMIT", "1GiB", 1);
    CHECK(PARSE(SPW_CLI_SIM, &flags, "sim", "--memory", "6GiB", "--limit=80%", "--no-pool", "--",
                "a", "--memory", "b"));
    CHECK(strcmp(variable("SPILLWAY_SIM_MEMORY"), "6442450944") == 0);
    CHECK(strcmp(variable("SPILLWAY_LIMIT"), "80%") == 0); /* the flag wins */
    CHECK(flags.no_pool);
    CHECK(!flags.help);
    CHECK(flags.pool_option == SPW_OPT_SPILLWAY_LIMIT);
    CHECK(strcmp(flags.command[0], "a") == 0);
    CHECK(strcmp(flags.command[2], "b") == 0);
    CHECK(flags.command[3] == NULL);

    CHECK(PARSE(SPW_CLI_SIM, &flags, "sim", "--seed=3", "prog", "-x"));
    CHECK(strcmp(flags.command[0], "prog") == 0);
    CHECK(flags.pool_option == SPW_OPT_COUNT);
    CHECK(!flags.no_pool);
    CHECK(PARSE(SPW_CLI_RUN, &flags, "run", "-h"));
    CHECK(flags.help);
    CHECK(flags.command == NULL);
    CHECK(PARSE(SPW_CLI_RUN, &flags, "run", "--"));
    CHECK(flags.command == NULL);
    CHECK(PARSE(SPW_CLI_RUN, &flags, "run", "--", "--", "x"));
    CHECK(strcmp(flags.command[0], "--") == 0);
    CHECK(strcmp(content(errors), "") == 0);
}

static void test_taken(void **state)
{
    in_child(take);
}

static void make_absolute(void)
{
    struct spw_cli_flags flags;

    CHECK(chdir("/usr") == 0);
    CHECK(PARSE(SPW_CLI_SIM, &flags, "sim", "--stats", "s-%p.json", "--log", "info:log",
                "--sim-log=/x", "--policy", "name", "prog"));
    CHECK(strcmp(variable("SPILLWAY_STATS"), "/usr/s-%p.json") == 0);
    CHECK(strcmp(variable("SPILLWAY_LOG"), "info:/usr/log") == 0);
    CHECK(strcmp(variable("SPILLWAY_SIM_LOG"), "/x") == 0);
    CHECK(strcmp(variable("SPILLWAY_POLICY"), "name") == 0);
    CHECK(PARSE(SPW_CLI_RUN, &flags, "run", "--log=debug", "prog"));
    CHECK(PARSE(SPW_CLI_RUN, &flags, "run", "--stats=/no/such/%p/s.json", "prog"));
    CHECK(PARSE(SPW_CLI_SIM, &flags, "sim", "--memory=8", "--host-limit=0", "prog") == false);
    CHECK(PARSE(SPW_CLI_SIM, &flags, "sim", "--memory=4096", "--host-limit=0", "prog"));
    CHECK(strcmp(variable("SPILLWAY_LOG"), "debug") == 0);
}

static void test_paths_become_absolute(void **state)
{
    in_child(make_absolute);
}

static void be_wrong(void)
{
    struct spw_cli_flags flags;

#define REFUSED(starter, expected, ...)                                                            \
    do {                                                                                           \
        CHECK(!PARSE(starter, &flags, __VA_ARGS__));                                               \
        if (strcmp(content(errors), "spillway: " expected "\n") != 0) {                            \
            printf("%sexpected: %s\n", content(errors), expected);                                 \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
    REFUSED(SPW_CLI_RUN, "run: --limt is not an option (did you mean --limit?)", "run", "--limt",
            "1");
    REFUSED(SPW_CLI_RUN, "run: --limt is not an option (did you mean --limit?)", "run", "--limt=1");
    REFUSED(SPW_CLI_RUN, "run: --coffee is not an option (spillway run --help-all lists them)",
            "run", "--coffee");
    REFUSED(SPW_CLI_RUN, "run: --memory is not an option here (it is one of spillway sim)", "run",
            "--memory", "6GiB", "x");
    REFUSED(SPW_CLI_RUN, "run: --no-pool is not an option here (it is one of spillway sim)", "run",
            "--no-pool", "x");
    REFUSED(SPW_CLI_SIM, "sim: --no-pool: no value is expected", "sim", "--no-pool=1", "x");
    REFUSED(SPW_CLI_SIM, "sim: --memory: a value is missing", "sim", "--no-pool", "--memory");
    REFUSED(SPW_CLI_SIM, "sim: --mem is not an option (did you mean --memory?)", "sim", "--mem=1");
    REFUSED(SPW_CLI_SIM, "sim: --no-pol is not an option (did you mean --no-pool?)", "sim",
            "--no-pol");
    REFUSED(SPW_CLI_SIM, "sim: -m is not an option (options begin with --)", "sim", "-m", "6GiB");
    REFUSED(SPW_CLI_SIM, "sim: --memory: a value is missing", "sim", "--memory");
    REFUSED(SPW_CLI_SIM, "sim: --memory: a value is missing", "sim", "--memory", "--", "x");
    REFUSED(SPW_CLI_SIM, "sim: --memory=24Gigs: not a size (expected 8GiB, 512MiB, 80% or bytes)",
            "sim", "--memory", "24Gigs", "x");
    REFUSED(SPW_CLI_SIM,
            "sim: --memory=4090: a GPU, not a size (did you mean --profile rtx4090-24g?)", "sim",
            "--memory", "4090", "x");
    REFUSED(SPW_CLI_SIM,
            "sim: --profile=A100: not the name of a GPU (expected a100-40g or a100-80g)", "sim",
            "--profile", "A100", "x");
    REFUSED(SPW_CLI_SIM, "sim: --memory=8: 8 bytes are too few (did you mean 8GiB?)", "sim",
            "--memory", "8", "x");
    REFUSED(SPW_CLI_RUN, "run: --stats=/no/such/s.json: there is no folder /no/such", "run",
            "--stats", "/no/such/s.json", "x");
    REFUSED(SPW_CLI_SIM, "sim: --sim-log=/no/such/log: there is no folder /no/such", "sim",
            "--sim-log", "/no/such/log", "x");
    REFUSED(SPW_CLI_SIM, "sim: --json=/tmp: it is a folder, expected a file", "sim", "--json",
            "/tmp", "x");
    REFUSED(SPW_CLI_SIM, "sim: --log=debug:/tmp: it is a folder, expected a file", "sim", "--log",
            "debug:/tmp", "x");
    REFUSED(SPW_CLI_SIM, "sim: --memory=: not a size (expected 8GiB, 512MiB, 80% or bytes)", "sim",
            "--memory=", "x");
    REFUSED(SPW_CLI_SIM, "sim: --devices=0: out of range (expected 1 to 64)", "sim", "--devices=0",
            "x");
    REFUSED(SPW_CLI_SIM, "sim: --devices=1000: out of range (expected 1 to 64)", "sim", "--devices",
            "1000", "x");
    REFUSED(SPW_CLI_SIM, "sim: --host-nodes=17: out of range (expected 1 to 16)", "sim",
            "--host-nodes=17", "x");
    REFUSED(SPW_CLI_SIM, "sim: --memory=0: no memory at all (expected 8GiB, 512MiB, 80% or bytes)",
            "sim", "--memory", "0", "x");
    REFUSED(SPW_CLI_SIM, "sim: --devices=two: not a whole number (expected 0, 1, 2, ...)", "sim",
            "--devices", "two", "x");
    REFUSED(SPW_CLI_SIM,
            "sim: --profile=h10-80g: not the name of a GPU (expected h100-80g, or a name that "
            "spillway sim --profile list prints)",
            "sim", "--profile", "h10-80g", "x");
    REFUSED(SPW_CLI_SIM, "sim: --fail=cuMemCreate: not NAME:N[+][:CODE] (expected cuMemCreate:3)",
            "sim", "--fail", "cuMemCreate", "x");
    REFUSED(SPW_CLI_SIM,
            "sim: --mode=tenser: not one of auto, tensor, segment, observe (did you mean "
            "tensor?)",
            "sim", "--mode", "tenser", "x");
    CHECK(getenv("SPILLWAY_SIM_MEMORY") == NULL);
}

static void test_refused(void **state)
{
    in_child(be_wrong);
}

static void fail_lists(void)
{
    static const char *const good[] = {"cuMemCreate:3", "cuMemCreate:3+", "cuMemMap:1:2",
                                       "a:1+:CUDA_ERROR_NOT_READY,b:2", "a_v2:1,b:2+,c:3:4"};
    static const char *const bad[] = {"a", "a:", ":1", "a:x", "a:1:", "a:1,", "a:1;b:2", "a:1+2"};
    struct spw_cli_flags flags;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        CHECK(PARSE(SPW_CLI_SIM, &flags, "sim", "--fail", (char *)good[i], "x"));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CHECK(!PARSE(SPW_CLI_SIM, &flags, "sim", "--fail", (char *)bad[i], "x"));
    }
}

static void test_fail_lists(void **state)
{
    in_child(fail_lists);
}

static int set_up(void **state)
{
    int fd = mkstemp(errors);

    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        unsetenv(spw_option_row((enum spw_option)i)->name);
    }
    return fd >= 0 ? close(fd) : -1;
}

static int tear_down(void **state)
{
    return unlink(errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_paths_become_absolute),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_fail_lists),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
