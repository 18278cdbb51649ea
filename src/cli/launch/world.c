#include "cli/launch/world.h"

#include "cli/console/messages.h"
#include "cli/launch/installation.h"
#include "cli/launch/job.h"
#include "common/bounds.h"
#include "common/options.h"
#include "gpu/communicator.h"

#include <ctype.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PYTHON_MODULE "sim/single_rank/sitecustomize.py"

/* ---- the list of ranks ---- */

static bool take_number(const char **text, unsigned *ret_number)
{
    char *end;
    unsigned long value;

    if (!isdigit((unsigned char)**text)) {
        return false;
    }
    value = strtoul(*text, &end, 10);
    *text = end;
    *ret_number = value < UINT_MAX ? (unsigned)value : UINT_MAX;
    return true;
}

/* Takes "3" or "0..7". */
static bool take_range(const char **text, unsigned *ret_first, unsigned *ret_last)
{
    if (!take_number(text, ret_first)) {
        return false;
    }
    *ret_last = *ret_first;
    if (strncmp(*text, "..", 2) == 0) {
        *text += 2;
        return take_number(text, ret_last) && *ret_first <= *ret_last;
    }
    return true;
}

static bool add_rank(const char *command, struct spw_cli_world *world, unsigned rank)
{
    if (rank >= world->size) {
        spw_cli_complain(command, "--rank: there is no such rank in --world=%u (expected 0 to %u)",
                         world->size, world->size - 1);
        return false;
    }
    if (world->count == SPW_CLI_WORLD_RANKS) {
        spw_cli_complain(command, "--rank: more than %d ranks", SPW_CLI_WORLD_RANKS);
        return false;
    }
    world->ranks[world->count++] = rank;
    return true;
}

static bool read_ranks(const char *command, const char *text, struct spw_cli_world *world)
{
    const char *rest = text;

    for (;; rest++) {
        unsigned first;
        unsigned last;

        if (!take_range(&rest, &first, &last) || (*rest != ',' && *rest != '\0')) {
            spw_cli_complain(command, "--rank=%s: not a list of ranks (expected 0,1,7 or 0..7)",
                             text);
            return false;
        }
        for (unsigned rank = first; rank <= last; rank++) {
            if (!add_rank(command, world, rank)) {
                return false;
            }
        }
        if (*rest == '\0') {
            return true;
        }
    }
}

/* ---- the command ---- */

bool spw_cli_world_read(const char *command, char *const *arguments,
                        struct spw_cli_world *ret_world)
{
    struct spw_option_value size = spw_option_get(SPW_OPT_SPILLWAY_SIM_WORLD, NULL, 0);
    struct spw_option_value ranks = spw_option_get(SPW_OPT_SPILLWAY_SIM_RANK, NULL, 0);

    *ret_world = (struct spw_cli_world){.size = size.set ? (unsigned)size.bytes : 0};
    if (!size.set) {
        if (ranks.set) {
            spw_cli_complain(command, "--rank needs --world, the number of ranks of the job");
        }
        return !ranks.set;
    }
    /* As in python -m torch.distributed.run. */
    for (char *const *argument = arguments; argument < arguments + 3 && *argument != NULL;
         argument++) {
        if (spw_cli_job_launcher(*argument) != NULL) {
            spw_cli_complain(command,
                             "%s starts ranks itself, and --world starts one without it (expected "
                             "the script: python train.py)",
                             *argument);
            return false;
        }
    }
    return read_ranks(command, ranks.text, ret_world);
}

/* ---- the environment ---- */

static void set_number(const char *name, unsigned value)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", value);
    setenv(name, text, 1);
}

static void set_default(const char *name, const char *value)
{
    setenv(name, value, /* overwrite */ 0);
}

/* Puts a folder in front of PYTHONPATH, once. */
static void prepend_python_path(const char *folder)
{
    const char *present = getenv("PYTHONPATH");
    size_t length = strlen(folder);
    char *text;

    if (present == NULL || *present == '\0') {
        setenv("PYTHONPATH", folder, 1);
        return;
    }
    if (strncmp(present, folder, length) == 0 &&
        (present[length] == ':' || present[length] == '\0')) {
        return;
    }
    if (asprintf(&text, "%s:%s", folder, present) >= 0) {
        setenv("PYTHONPATH", text, 1);
        free(text);
    }
}

bool spw_cli_world_select(const char *command, const struct spw_cli_world *world, size_t index)
{
    const char *devices = spw_option_row(SPW_OPT_SPILLWAY_SIM_DEVICES)->name;
    unsigned local = world->size < SPW_GPU_IN_MACHINE ? world->size : SPW_GPU_IN_MACHINE;
    char path[PATH_MAX];
    unsigned rank;

    if (world->size == 0) {
        return true;
    }
    if (!spw_cli_installation_find(command, PYTHON_MODULE, path)) {
        return false;
    }
    prepend_python_path(dirname(path));
    if (spw_option_get(SPW_OPT_SPILLWAY_SIM_DEVICES, NULL, 0).set) {
        local = (unsigned)spw_option_get(SPW_OPT_SPILLWAY_SIM_DEVICES, NULL, 0).bytes;
    } else {
        set_number(devices, local);
    }
    rank = world->ranks[index];
    set_number("RANK", rank);
    set_number("WORLD_SIZE", world->size);
    set_number("LOCAL_RANK", rank % local);
    set_number("LOCAL_WORLD_SIZE", local);
    set_number("GROUP_RANK", rank / local);
    set_default("MASTER_ADDR", "127.0.0.1");
    set_default("MASTER_PORT", "29500");
    /* Without this, a thread of PyTorch would read the store while the interpreter ends. */
    set_default("TORCH_NCCL_ENABLE_MONITORING", "0");
    return true;
}
