#include "cli/launch/job.h"

#include "common/bounds.h"
#include "common/options.h"
#include "common/path.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The options of each launcher that set the number of ranks on a machine, and the variable that
 * applies without them. */
static const struct launcher {
    const char *name;
    const char *options[3];
    const char *variable;
} launchers[] = {
    {"torchrun", {"nproc-per-node"}, NULL},
    {"torch.distributed.run", {"nproc-per-node"}, NULL},
    {"torch.distributed.launch", {"nproc-per-node"}, NULL},
    {"accelerate", {"num-processes"}, NULL},
    {"accelerate-launch", {"num-processes"}, NULL},
    {"accelerate.commands.launch", {"num-processes"}, NULL},
    {"deepspeed", {"num-gpus"}, NULL},
    {"mpirun", {"n", "np", "c"}, NULL},
    {"mpiexec", {"n", "np", "c"}, NULL},
    {"srun", {"n", "ntasks", "ntasks-per-node"}, "SLURM_NTASKS"},
};

static const struct launcher *find(const char *argument)
{
    const char *name = spw_path_name(argument);

    for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++) {
        if (strcmp(name, launchers[i].name) == 0) {
            return &launchers[i];
        }
    }
    return NULL;
}

const char *spw_cli_job_launcher(const char *argument)
{
    const struct launcher *launcher = find(argument);

    return launcher != NULL ? launcher->name : NULL;
}

/* Returns the number that a text consists of, or 0. */
static unsigned number_of(const char *text)
{
    char *end;
    unsigned long value = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;

    return value > 0 && value <= UINT_MAX && *end == '\0' ? (unsigned)value : 0;
}

/* Returns the text behind the name of an option, such as "=4" in --nproc_per_node=4 and "4" in -n4.
 * Returns NULL if the argument is not this option. */
static const char *after_option(const char *argument, const char *option)
{
    size_t length = strlen(option);

    if (*argument != '-') {
        return NULL;
    }
    argument += argument[1] == '-' ? 2 : 1;
    for (size_t i = 0; i < length; i++) {
        if ((argument[i] == '_' ? '-' : argument[i]) != option[i]) {
            return NULL;
        }
    }
    argument += length;
    return *argument == '\0' || *argument == '=' ||
                   (length == 1 && isdigit((unsigned char)*argument))
               ? argument
               : NULL;
}

/* Returns the value of a launcher's option at `argument`; 0: it is no such option. */
static unsigned value_at(const struct launcher *launcher, char *const *argument)
{
    for (int i = 0; i < 3 && launcher->options[i] != NULL; i++) {
        const char *rest = after_option(*argument, launcher->options[i]);

        if (rest != NULL && *rest == '\0') {
            return argument[1] != NULL ? number_of(argument[1]) : 0;
        }
        if (rest != NULL) {
            return number_of(rest + (*rest == '='));
        }
    }
    return 0;
}

/* Returns the number of ranks that the launcher at `argument` starts; 0: not known. The program
 * follows the launcher's options; its own options may have the same names. It is the first argument
 * that is no option, and not the value of one. */
static unsigned count_ranks(const struct launcher *launcher, char *const *argument)
{
    const char *variable = launcher->variable != NULL ? getenv(launcher->variable) : NULL;
    bool takes_value = false;
    unsigned found = 0;

    if (argument[1] != NULL && strcmp(argument[1], "launch") == 0) { /* of accelerate */
        argument++;
    }
    while (*++argument != NULL && (**argument == '-' || takes_value)) {
        unsigned value = value_at(launcher, argument);

        found = value > 0 ? value : found;
        takes_value = **argument == '-' && strchr(*argument, '=') == NULL;
    }
    return found > 0 || variable == NULL ? found : number_of(variable);
}

void spw_cli_job_set_devices(char *const *arguments)
{
    const char *launcher = "";
    unsigned ranks = 1, devices;
    char text[16];

    if (spw_option_get(SPW_OPT_SPILLWAY_SIM_DEVICES, NULL, 0).set) {
        return;
    }
    /* A launcher may start another one: srun --ntasks-per-node 1 torchrun ... */
    for (; *arguments != NULL; arguments++) {
        const struct launcher *found = find(*arguments);
        unsigned count = found != NULL ? count_ranks(found, arguments) : 0;

        if (count > ranks) {
            launcher = found->name;
            ranks = count;
        }
    }
    if (ranks > 1) {
        devices = ranks < SPW_DEVICES_MAX ? ranks : SPW_DEVICES_MAX;
        snprintf(text, sizeof(text), "%u", devices);
        setenv(spw_option_row(SPW_OPT_SPILLWAY_SIM_DEVICES)->name, text, 1);
        fprintf(stderr,
                "spillway: %s starts %u ranks, so %u devices are simulated (--devices sets another "
                "number)\n",
                launcher, ranks, devices);
    }
}
