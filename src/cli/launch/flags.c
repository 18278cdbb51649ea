#include "cli/launch/flags.h"

#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "gpu/profile.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define POOL_PREFIX "SPILLWAY_"
#define SIM_PREFIX  "SPILLWAY_SIM_"

/* Flags without a variable, each for some commands only. */
enum flag_switch { GPUS, VARY, NO_POOL, COMPARE, FIT, REPORT, OPEN, VERBOSE, SWITCH_COUNT };

static const struct {
    const char *name;
    const char *value; /* its form in help; NULL: the flag has no value */
    bool of[SPW_CLI_STARTERS];
    const char *help;
} switches[SWITCH_COUNT] = {
    [GPUS] = {"gpus",
              "NAME,...",
              {[SPW_CLI_FIT] = true},
              "ask only about these GPUs; sim --profile list prints all names"},
    [VARY] = {"vary",
              "NAME=VALUE,...",
              {[SPW_CLI_FIT] = true},
              "replace {NAME} in the command by each of these values, the one that needs least "
              "memory first, and find the last one that fits; 1..16 is each number from 1 to 16"},
    [NO_POOL] = {"no-pool",
                 NULL,
                 {[SPW_CLI_SIM] = true, [SPW_CLI_FIT] = true},
                 "run without spillway, in an otherwise unchanged environment"},
    [COMPARE] = {"compare",
                 NULL,
                 {[SPW_CLI_SIM] = true},
                 "run the command several times, with and without the pool, and compare the memory "
                 "that it needs"},
    [FIT] = {"fit",
             NULL,
             {[SPW_CLI_RUN] = true},
             "if the program does not fit, choose the cheapest modules to recompute and memory "
             "to place on the host; the next runs with --fit apply this choice"},
    [REPORT] = {"report",
                "FILE",
                {[SPW_CLI_RUN] = true, [SPW_CLI_SIM] = true},
                "record the program, and write a page of HTML about its memory when it has ended; "
                "the recording is kept beside the page"},
    [OPEN] = {"open",
              NULL,
              {[SPW_CLI_RUN] = true, [SPW_CLI_SIM] = true},
              "open the page of --report in the browser (xdg-open)"},
    [VERBOSE] =
        {"verbose",
         NULL,
         {[SPW_CLI_RUN] = true, [SPW_CLI_SIM] = true},
         "print more at the end: calls, moves, all figures of the verdict, and how much of the "
         "GPU's work was checked"},
};

/* The rows of a list of options, with the switches, --help-all and a last row of zeros. */
enum { ROW_COUNT = SPW_OPT_COUNT + SWITCH_COUNT + 2 };

/* The commands whose --help shows an option. */
static const enum {
    SHOWN_NEVER,
    SHOWN_RUN,
    SHOWN_SIM,
    SHOWN_ALL
} shown[SPW_OPT_COUNT] = {
#define SPW_OPTION_SHOWN(name, commands) [SPW_OPT_##name] = SHOWN_##commands,
#include "common/options.def"
};

struct flag_list {
    char names[SPW_OPT_COUNT][SPW_CLI_FLAG_NAME];
    struct spw_cli_option rows[ROW_COUNT];
};

/* Returns true if an option of the pool has the same flag as this option of the simulated GPU. */
static bool collides(const char *sim_name)
{
    char pool_name[SPW_CLI_FLAG_NAME];

    snprintf(pool_name, sizeof(pool_name), POOL_PREFIX "%s", sim_name + strlen(SIM_PREFIX));
    return spw_option_find(pool_name) != SPW_OPT_COUNT;
}

const char *spw_cli_flag_name(enum spw_option option, char name[SPW_CLI_FLAG_NAME])
{
    const struct spw_option_row *row = spw_option_row(option);
    const char *rest = "";
    size_t length = 0;

    if (row->scope == SPW_SCOPE_SIM && !collides(row->name)) {
        rest = row->name + strlen(SIM_PREFIX);
    } else if (strncmp(row->name, POOL_PREFIX, strlen(POOL_PREFIX)) == 0) {
        rest = row->name + strlen(POOL_PREFIX);
    }
    for (; *rest != '\0' && length + 1 < SPW_CLI_FLAG_NAME; rest++) {
        name[length++] = *rest == '_' ? '-' : (char)tolower((unsigned char)*rest);
    }
    name[length] = '\0';
    return name;
}

/* Returns true if an option has a flag. `fit` sets some options itself, such as the GPU and its
 * memory. */
static bool has_flag(enum spw_option option, enum spw_cli_starter starter)
{
    char name[SPW_CLI_FLAG_NAME];

    if (starter == SPW_CLI_FIT &&
        (option == SPW_OPT_SPILLWAY_SIM_PROFILE || option == SPW_OPT_SPILLWAY_SIM_MEMORY ||
         option == SPW_OPT_SPILLWAY_SIM_OVERHEAD || option == SPW_OPT_SPILLWAY_SIM_PROGRESS ||
         option == SPW_OPT_SPILLWAY_LIMIT || option == SPW_OPT_SPILLWAY_STATS)) {
        return false;
    }
    return *spw_cli_flag_name(option, name) != '\0' &&
           (starter != SPW_CLI_RUN || spw_option_row(option)->scope != SPW_SCOPE_SIM);
}

/* Returns true for NAME:N[+][:CODE], separated by commas. */
static bool is_fail_list(const char *text)
{
    const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    for (;; text++) {
        size_t name = strspn(text, letters);
        size_t number = text[name] == ':' ? strspn(text + name + 1, "0123456789") : 0;

        if (name == 0 || number == 0) {
            return false;
        }
        text += name + 1 + number;
        text += *text == '+';
        if (*text == ':') {
            size_t code = strspn(text + 1, letters);

            if (code == 0) {
                return false;
            }
            text += 1 + code;
        }
        if (*text != ',') {
            return *text == '\0';
        }
    }
}

/* Returns true for a number below 1024 without a unit: the user hardly means bytes. */
static bool lacks_unit(const char *text, const struct spw_option_value *value)
{
    return text[strspn(text, "0123456789")] == '\0' && value->bytes > 0 && value->bytes < 1024;
}

/* Returns true if the memory's size is the name of a GPU, such as 4090. */
static bool is_card(enum spw_option option, const char *text, char *complaint, size_t capacity)
{
    const struct spw_gpu_profile *card =
        option == SPW_OPT_SPILLWAY_SIM_MEMORY ? spw_gpu_profile_find(text) : NULL;

    if (card != NULL) {
        snprintf(complaint, capacity, "a GPU, not a size (did you mean --profile %s?)", card->id);
    }
    return card != NULL;
}

/* The path in the value of an option, or NULL. */
static const char *path_in(enum spw_option option, const char *text)
{
    const char *colon = strchr(text, ':');

    switch (spw_option_row(option)->type) {
    case SPW_TYPE_PATH:
        return text;
    case SPW_TYPE_LOG:
        return colon != NULL ? colon + 1 : NULL;
    default:
        return NULL;
    }
}

/* Returns true if the folder of an output file is missing. A folder with a pattern is not
 * checked. */
static bool lacks_folder(const char *path, char folder[PATH_MAX])
{
    const char *end = strrchr(path, '/');
    size_t length = end == NULL ? 0 : (size_t)(end - path);

    if (length == 0 || length >= PATH_MAX || memchr(path, '%', length) != NULL) {
        return false;
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    return access(folder, F_OK) != 0;
}

static bool is_usable(enum spw_option option, const char *text, char *complaint, size_t capacity)
{
    struct spw_option_value value;
    char folder[PATH_MAX];
    struct stat status;

    if (is_card(option, text, complaint, capacity) ||
        !spw_option_parse(option, text, &value, complaint, capacity)) {
        return false;
    }
    if (spw_option_row(option)->type == SPW_TYPE_SIZE && lacks_unit(text, &value)) {
        snprintf(complaint, capacity, "%s bytes are too few (did you mean %sGiB?)", text, text);
        return false;
    }
    if (path_in(option, text) != NULL && lacks_folder(path_in(option, text), folder)) {
        snprintf(complaint, capacity, "there is no folder %.200s", folder);
        return false;
    }
    if (path_in(option, text) != NULL && option != SPW_OPT_SPILLWAY_SIM_ROOT &&
        stat(path_in(option, text), &status) == 0 && S_ISDIR(status.st_mode)) {
        snprintf(complaint, capacity, "it is a folder, expected a file");
        return false;
    }
    if (option == SPW_OPT_SPILLWAY_SIM_PROFILE && spw_gpu_profile_find(text) == NULL) {
        char expected[256];

        spw_gpu_profile_expected(text, expected, sizeof(expected));
        snprintf(complaint, capacity, "not the name of a GPU (expected %s)", expected);
        return false;
    }
    if (option == SPW_OPT_SPILLWAY_SIM_FAIL && !is_fail_list(text)) {
        snprintf(complaint, capacity, "not NAME:N[+][:CODE] (expected cuMemCreate:3)");
        return false;
    }
    if (option == SPW_OPT_SPILLWAY_SIM_MEMORY && value.bytes == 0 && value.permille == 0) {
        snprintf(complaint, capacity, "no memory at all (expected 8GiB, 512MiB, 80%% or bytes)");
        return false;
    }
    return true;
}

/* Returns the value for the variable. A relative path is made absolute, because the program may
 * change its working directory. A size is converted to a number of bytes, which every reader can
 * parse. */
static const char *variable_text(enum spw_option option, const char *text, char *buffer,
                                 size_t capacity)
{
    const struct spw_option_row *row = spw_option_row(option);
    const char *path = path_in(option, text);
    struct spw_option_value value;
    char folder[PATH_MAX];

    if (row->type == SPW_TYPE_SIZE && spw_option_parse(option, text, &value, NULL, 0) &&
        !value.percent) {
        snprintf(buffer, capacity, "%" PRIu64, value.bytes);
        return buffer;
    }
    if (path != NULL && *path != '/' && getcwd(folder, sizeof(folder)) != NULL) {
        snprintf(buffer, capacity, "%.*s%s/%s", (int)(path - text), text, folder, path);
        return buffer;
    }
    return text;
}

static bool take_option(const struct spw_cli_arguments *from)
{
    enum spw_option option = (enum spw_option)from->option->key;
    struct spw_cli_flags *flags = from->settings;
    char complaint[SPW_COMPLAINT_TEXT];
    static char buffer[2 * PATH_MAX];

    if (option == SPW_OPT_SPILLWAY_SIM_PROFILE && strcmp(from->value, "list") == 0) {
        flags->list_profiles = true;
        return true;
    }
    if (!is_usable(option, from->value, complaint, sizeof(complaint))) {
        spw_cli_complain(from->command, "--%s=%s: %s", from->option->name, from->value, complaint);
        return false;
    }
    setenv(spw_option_row(option)->name, variable_text(option, from->value, buffer, sizeof(buffer)),
           1);
    if (spw_option_row(option)->scope != SPW_SCOPE_SIM) {
        flags->pool_option = option;
    }
    flags->policy |= option == SPW_OPT_SPILLWAY_POLICY;
    return true;
}

static void fill_list(struct flag_list *list, enum spw_cli_starter starter,
                      struct spw_cli_flags *flags)
{
    const struct spw_cli_option places[SWITCH_COUNT] = {
        [GPUS] = {.text = &flags->gpus},        [VARY] = {.text = &flags->vary},
        [NO_POOL] = {.given = &flags->no_pool}, [COMPARE] = {.given = &flags->compare},
        [FIT] = {.given = &flags->fit},         [REPORT] = {.text = &flags->report},
        [OPEN] = {.given = &flags->open},       [VERBOSE] = {.given = &flags->verbose},
    };
    struct spw_cli_option *row = list->rows;

    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        if (has_flag((enum spw_option)i, starter)) {
            *row++ = (struct spw_cli_option){
                .name = spw_cli_flag_name((enum spw_option)i, list->names[i]),
                .take = take_option,
                .key = i};
        }
    }
    for (int i = 0; i < SWITCH_COUNT; i++) {
        if (switches[i].of[starter]) {
            *row = places[i];
            row++->name = switches[i].name;
        }
    }
    *row++ = (struct spw_cli_option){"help-all", .given = &flags->help_all};
    *row = (struct spw_cli_option){0};
}

bool spw_cli_flags_parse(int argc, char **argv, enum spw_cli_starter starter,
                         struct spw_cli_flags *ret_flags)
{
    static struct flag_list lists[SPW_CLI_STARTERS];
    struct spw_cli_flags flags = {.pool_option = SPW_OPT_COUNT};
    struct spw_cli_arguments arguments = {
        .command = argv[0],
        .argc = argc,
        .argv = argv,
        .options = lists[starter].rows,
        .other_command = "sim",
        .other_options = starter == SPW_CLI_SIM ? NULL : lists[SPW_CLI_SIM].rows,
        .stops_at_operand = true,
        .settings = &flags,
    };

    for (int i = 0; i < SPW_CLI_STARTERS; i++) {
        fill_list(&lists[i], (enum spw_cli_starter)i, &flags);
    }
    if (!spw_cli_arguments_parse(&arguments)) {
        return false;
    }
    if (flags.verbose) {
        setenv(spw_option_row(SPW_OPT_SPILLWAY_SUMMARY)->name, "on", /* replace */ 0);
    }
    flags.help = arguments.helps;
    flags.command = arguments.next < argc ? argv + arguments.next : NULL;
    *ret_flags = flags;
    return true;
}

int spw_cli_flags_read(int argc, char **argv, enum spw_cli_starter starter, const char *help,
                       struct spw_cli_flags *ret_flags)
{
    if (!spw_cli_flags_parse(argc, argv, starter, ret_flags)) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (ret_flags->help || ret_flags->help_all) {
        fputs(help, stdout);
        spw_cli_flags_print(stdout, starter, /* few */ !ret_flags->help_all);
        return SPW_CLI_EXIT_OK;
    }
    if (ret_flags->command == NULL && !ret_flags->list_profiles) {
        spw_cli_complain(argv[0], "no command given (expected spillway %s [options] -- COMMAND)",
                         argv[0]);
        return SPW_CLI_EXIT_USAGE;
    }
    return -1;
}

/* ---- help ---- */

/* Groups of flags in help; `run` has only the first. */
enum group { POOL, SIMULATED, UNDOCUMENTED, GROUP_COUNT };

static const char *const group_titles[GROUP_COUNT] = {
    [POOL] = "Pool",
    [SIMULATED] = "Simulated GPU",
    [UNDOCUMENTED] = "Undocumented driver behaviour (real drivers may differ; test both)",
};

static enum group group_of(enum spw_option option)
{
    switch (option) {
    case SPW_OPT_SPILLWAY_SIM_UNMAP:
    case SPW_OPT_SPILLWAY_SIM_SETACCESS:
    case SPW_OPT_SPILLWAY_SIM_UNMAP_WAITS:
    case SPW_OPT_SPILLWAY_SIM_FREE_SYNC:
    case SPW_OPT_SPILLWAY_SIM_CAPTURE_VMM:
        return UNDOCUMENTED;
    default:
        return spw_option_row(option)->scope == SPW_SCOPE_SIM ? SIMULATED : POOL;
    }
}

/* The form of an option's value, for help: "N", or "on|off". */
static const char *value_syntax(enum spw_option option, char *text, size_t capacity)
{
    static const char *const by_type[SPW_TYPE_COUNT_OF_TYPES] = {
        [SPW_TYPE_SIZE] = "SIZE",     [SPW_TYPE_PERCENT] = "PERCENT", [SPW_TYPE_COUNT] = "N",
        [SPW_TYPE_SWITCH] = "on|off", [SPW_TYPE_TEXT] = "NAME",       [SPW_TYPE_PATH] = "FILE",
    };
    enum spw_option_type type = spw_option_row(option)->type;
    const char *const *words = spw_option_words(type);
    size_t used = 0;

    if (option == SPW_OPT_SPILLWAY_POLICY) {
        return "FILE";
    }
    if (option == SPW_OPT_SPILLWAY_SIM_FAIL) {
        return "CALL:N,...";
    }
    if (option == SPW_OPT_SPILLWAY_SIM_RANK) {
        return "N,...";
    }
    if (option == SPW_OPT_SPILLWAY_SIM_CUDNN) {
        return "VERSION|PATH";
    }
    if (words == NULL) {
        return by_type[type];
    }
    for (const char *const *word = words; *word != NULL && used < capacity; word++) {
        used +=
            (size_t)snprintf(text + used, capacity - used, "%s%s", word > words ? "|" : "", *word);
    }
    if (type == SPW_TYPE_LOG && used < capacity) {
        snprintf(text + used, capacity - used, "[:FILE]");
    }
    return text;
}

enum { HELP_COLUMN = 6, HELP_WIDTH = 80 };

/* Prints text on indented lines, wrapped at spaces. */
static void print_wrapped(FILE *out, const char *text)
{
    int column = 0;

    while (*text != '\0') {
        int length = (int)strcspn(text, " ");

        if (column > 0 && column + 1 + length > HELP_WIDTH) {
            fputc('\n', out);
            column = 0;
        }
        column += fprintf(out, "%*s%.*s", column > 0 ? 1 : HELP_COLUMN, "", length, text);
        text += length + (text[length] == ' ');
    }
    fputc('\n', out);
}

static void print_option(FILE *out, enum spw_option option)
{
    const struct spw_option_row *row = spw_option_row(option);
    char name[SPW_CLI_FLAG_NAME];
    char values[64];
    char text[1024];

    snprintf(text, sizeof(text), "%s%s%s%s", row->help, *row->fallback != '\0' ? " [" : "",
             row->fallback, *row->fallback != '\0' ? "]" : "");
    fprintf(out, "  --%s %s\n", spw_cli_flag_name(option, name),
            value_syntax(option, values, sizeof(values)));
    print_wrapped(out, text);
}

static void print_switches(FILE *out, enum spw_cli_starter starter)
{
    for (int i = 0; i < SWITCH_COUNT; i++) {
        if (switches[i].of[starter]) {
            fprintf(out, "  --%s%s%s\n", switches[i].name, switches[i].value != NULL ? " " : "",
                    switches[i].value != NULL ? switches[i].value : "");
            print_wrapped(out, switches[i].help);
        }
    }
}

/* Prints the options of one group. With `few`, omits the flags that --help does not show. */
static void print_group(FILE *out, enum spw_cli_starter starter, enum group group, bool few)
{
    unsigned wanted = starter == SPW_CLI_RUN ? SHOWN_RUN : SHOWN_SIM;

    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        if (has_flag((enum spw_option)i, starter) && group_of((enum spw_option)i) == group &&
            (!few || (shown[i] & wanted) != 0)) {
            print_option(out, (enum spw_option)i);
        }
    }
}

void spw_cli_flags_print(FILE *out, enum spw_cli_starter starter, bool few)
{
    bool sim = starter != SPW_CLI_RUN;

    if (few) {
        fputs("\nOptions:\n", out);
        print_switches(out, starter);
        print_group(out, starter, SIMULATED, few);
        print_group(out, starter, POOL, few);
        fputs("\n--help-all lists all options.\n", out);
        return;
    }
    for (int group = POOL; group <= (sim ? UNDOCUMENTED : POOL); group++) {
        fprintf(out, "\n%s:\n", sim ? group_titles[group] : "Options");
        if (group == (sim ? SIMULATED : POOL)) {
            print_switches(out, starter);
        }
        print_group(out, starter, (enum group)group, few);
    }
}
