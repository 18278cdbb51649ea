#include "cli/launch/flags.h"

#include "common/nearest.h"
#include "cli/console/messages.h"
#include "cli/launch/gpu_profiles.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL_PREFIX "SPILLWAY_"
#define SIM_PREFIX  "SPILLWAY_SIM_"

/* Switches of `sim` alone, which are no variables. */
enum flag_switch { NO_POOL, COMPARE, SWITCH_COUNT };

static const struct {
    const char *name;
    const char *help;
} switches[SWITCH_COUNT] = {
    [NO_POOL] = {"no-pool", "bare: without spillway, the environment left alone"},
    [COMPARE] = {"compare", "run the command bare and under the pool, several times, and compare"},
};

enum { MOST_DEVICES = 64, MOST_HOST_NODES = 16 }; /* that the simulated driver makes */

/* Whether the pool has an option of the same name as this one of the simulated GPU. */
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

static bool has_flag(enum spw_option option, bool sim)
{
    char name[SPW_CLI_FLAG_NAME];

    return *spw_cli_flag_name(option, name) != '\0' &&
           (sim || spw_option_row(option)->scope != SPW_SCOPE_SIM);
}

/* Looks a flag up; SPW_OPT_COUNT when the launcher does not have it. */
static enum spw_option find_flag(const char *flag, bool sim)
{
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        char name[SPW_CLI_FLAG_NAME];

        if (has_flag((enum spw_option)i, sim) &&
            strcmp(spw_cli_flag_name((enum spw_option)i, name), flag) == 0) {
            return (enum spw_option)i;
        }
    }
    return SPW_OPT_COUNT;
}

/* Looks a switch up, without dashes; SWITCH_COUNT if there is none. */
static enum flag_switch find_switch(const char *flag)
{
    int i = 0;

    while (i < SWITCH_COUNT && strcmp(flag, switches[i].name) != 0) {
        i++;
    }
    return (enum flag_switch)i;
}

static void complain_unknown(const char *subcommand, const char *flag, bool sim)
{
    char names[SPW_OPT_COUNT][SPW_CLI_FLAG_NAME];
    const char *candidates[SPW_OPT_COUNT + SWITCH_COUNT];
    const char *nearest;
    size_t count = 0;

    if (!sim && (find_flag(flag, true) != SPW_OPT_COUNT || find_switch(flag) != SWITCH_COUNT)) {
        spw_cli_complain(subcommand, "--%s is not an option here (it is one of spillway sim)",
                         flag);
        return;
    }
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        if (has_flag((enum spw_option)i, sim)) {
            candidates[count] = spw_cli_flag_name((enum spw_option)i, names[count]);
            count++;
        }
    }
    for (int i = 0; sim && i < SWITCH_COUNT; i++) {
        candidates[count++] = switches[i].name;
    }
    nearest = spw_nearest(flag, 0, candidates, count);
    if (nearest != NULL) {
        spw_cli_complain(subcommand, "--%s is not an option (did you mean --%s?)", flag, nearest);
    } else {
        spw_cli_complain(subcommand, "--%s is not an option (spillway %s --help lists them)", flag,
                         subcommand);
    }
}

/* NAME:N[+][:CODE], separated by commas. */
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

static bool is_usable(enum spw_option option, const char *text, char *complaint, size_t capacity)
{
    struct spw_option_value value;

    if (!spw_option_parse(option, text, &value, complaint, capacity)) {
        return false;
    }
    if (option == SPW_OPT_SPILLWAY_SIM_PROFILE && spw_cli_gpu_profile_find(text) == NULL) {
        spw_cli_gpu_profile_complain(text, complaint, capacity);
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
    if (option == SPW_OPT_SPILLWAY_SIM_DEVICES &&
        (value.bytes == 0 || value.bytes > MOST_DEVICES)) {
        snprintf(complaint, capacity, "not a number of devices (expected 1 to %d)", MOST_DEVICES);
        return false;
    }
    if (option == SPW_OPT_SPILLWAY_SIM_HOST_NODES &&
        (value.bytes == 0 || value.bytes > MOST_HOST_NODES)) {
        snprintf(complaint, capacity, "not a number of host memory nodes (expected 1 to %d)",
                 MOST_HOST_NODES);
        return false;
    }
    return true;
}

/* The value as the variable gets it. A path that the user gave here must not move with a program
 * that changes its folder; a size is handed on in bytes, which every reader understands. */
static const char *variable_text(enum spw_option option, const char *text, char *buffer,
                                 size_t capacity)
{
    const struct spw_option_row *row = spw_option_row(option);
    const char *path = row->type == SPW_TYPE_PATH ? text : NULL;
    struct spw_option_value value;
    char folder[PATH_MAX];

    if (row->type == SPW_TYPE_SIZE && spw_option_parse(option, text, &value, NULL, 0) &&
        !value.percent) {
        snprintf(buffer, capacity, "%" PRIu64, value.bytes);
        return buffer;
    }
    if (row->type == SPW_TYPE_LOG && strchr(text, ':') != NULL) {
        path = strchr(text, ':') + 1;
    }
    if (path != NULL && *path != '/' && getcwd(folder, sizeof(folder)) != NULL) {
        snprintf(buffer, capacity, "%.*s%s/%s", (int)(path - text), text, folder, path);
        return buffer;
    }
    return text;
}

/* Takes one flag and its value; returns how many arguments that were, 0 on bad usage. */
static int take_flag(char **argv, bool sim, struct spw_cli_flags *flags, const char *subcommand)
{
    const char *equals = strchr(argv[0], '=');
    const char *text = equals != NULL ? equals + 1 : argv[1];
    char complaint[SPW_COMPLAINT_TEXT];
    char buffer[2 * PATH_MAX];
    char flag[SPW_CLI_FLAG_NAME];
    enum spw_option option;

    snprintf(flag, sizeof(flag), "%.*s", (int)strcspn(argv[0] + 2, "="), argv[0] + 2);
    option = find_flag(flag, sim);
    if (option == SPW_OPT_COUNT) {
        complain_unknown(subcommand, flag, sim);
        return 0;
    }
    if (text == NULL || (equals == NULL && strcmp(text, "--") == 0)) {
        spw_cli_complain(subcommand, "--%s: a value is missing", flag);
        return 0;
    }
    if (!is_usable(option, text, complaint, sizeof(complaint))) {
        spw_cli_complain(subcommand, "--%s=%s: %s", flag, text, complaint);
        return 0;
    }
    setenv(spw_option_row(option)->name, variable_text(option, text, buffer, sizeof(buffer)), 1);
    if (spw_option_row(option)->scope != SPW_SCOPE_SIM) {
        flags->pool_option = option;
    }
    return equals != NULL ? 1 : 2;
}

bool spw_cli_flags_parse(int argc, char **argv, bool sim, struct spw_cli_flags *ret_flags)
{
    const char *subcommand = argv[0];
    struct spw_cli_flags flags = {.pool_option = SPW_OPT_COUNT};
    int i = 1;

    while (i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0) {
        int taken = 1;

        if (spw_cli_is_help(argv[i])) {
            flags.help = true;
        } else if (strncmp(argv[i], "--", 2) != 0) {
            spw_cli_complain(subcommand, "%s is not an option (options begin with --)", argv[i]);
            return false;
        } else if (sim && find_switch(argv[i] + 2) != SWITCH_COUNT) {
            flags.no_pool |= find_switch(argv[i] + 2) == NO_POOL;
            flags.compare |= find_switch(argv[i] + 2) == COMPARE;
        } else if ((taken = take_flag(argv + i, sim, &flags, subcommand)) == 0) {
            return false;
        }
        i += taken;
    }
    i += i < argc && strcmp(argv[i], "--") == 0;
    flags.command = i < argc ? argv + i : NULL;
    *ret_flags = flags;
    return true;
}

void spw_cli_flags_print(FILE *out, bool sim)
{
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        const struct spw_option_row *row = spw_option_row((enum spw_option)i);
        char name[SPW_CLI_FLAG_NAME];

        if (has_flag((enum spw_option)i, sim)) {
            fprintf(out, "  --%-13s %s%s%s%s\n", spw_cli_flag_name((enum spw_option)i, name),
                    row->help, *row->fallback != '\0' ? " [" : "", row->fallback,
                    *row->fallback != '\0' ? "]" : "");
        }
    }
    for (int i = 0; sim && i < SWITCH_COUNT; i++) {
        fprintf(out, "  --%-13s %s\n", switches[i].name, switches[i].help);
    }
}
