#include "cli/cudnn/choice.h"

#include "cli/console/messages.h"
#include "cli/cudnn/library.h"
#include "common/options.h"
#include "system/cache.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libcudnn.so.9"

/* The folder of a library in a folder of pip (--target), and in that of an archive of NVIDIA. */
static const char *const inside[] = {"", "/lib", "/lib64", "/nvidia/cudnn/lib"};

static const char *const system_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/cuda",
};

/* ---- one library ---- */

/* Writes the version of a library as text: 92600 is "9.26.0". Returns false if it cannot be asked
 * without a device. The process that loads the library may crash in it. */
static bool read_version(const char *path, char *ret_text, size_t capacity)
{
    size_t number = 0;
    int ends[2], status, written;
    pid_t pid;

    if (pipe(ends) != 0) {
        return false;
    }
    pid = fork();
    if (pid == 0) {
        number = spw_cli_cudnn_version(path);
        _exit(write(ends[1], &number, sizeof(number)) != sizeof(number));
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], &number, sizeof(number)) != sizeof(number)) {
        number = 0;
    }
    close(ends[0]);
    if (pid > 0) {
        (void)waitpid(pid, &status, 0);
    }
    written = snprintf(ret_text, capacity, "%zu.%zu.%zu", number / 10000, number / 100 % 100,
                       number % 100);
    return number > 0 && written > 0 && (size_t)written < capacity;
}

/* Looks for the library in a folder, and writes its path without symbolic links. */
static bool find_inside(const char *folder, char ret_path[PATH_MAX])
{
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++) {
        if (snprintf(path, sizeof(path), "%s%s/" LIBRARY, folder, inside[i]) < PATH_MAX &&
            realpath(path, ret_path) != NULL) {
            return true;
        }
    }
    return false;
}

/* ---- by version ---- */

static bool is_version(const char *text)
{
    return *text >= '0' && *text <= '9' && text[strspn(text, "0123456789.")] == '\0';
}

/* True if one of two versions begins with all numbers of the other: 9.26 is 9.26.0, and so is pip's
 * 9.26.0.12. */
static bool is_same(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (*a == '\0' && (*b == '\0' || *b == '.')) || (*b == '\0' && *a == '.');
}

static bool try_folder(const char *folder, const char *version, struct spw_cli_cudnn_choice *choice)
{
    return find_inside(folder, choice->path) &&
           read_version(choice->path, choice->version, sizeof(choice->version)) &&
           is_same(choice->version, version);
}

/* Tries the subfolders of the folder for libraries that the user has fetched. */
static bool try_fetched(const char *parent, const char *version,
                        struct spw_cli_cudnn_choice *choice)
{
    DIR *folders = opendir(parent);
    const struct dirent *entry;
    bool found = false;

    while (folders != NULL && !found && (entry = readdir(folders)) != NULL) {
        char folder[PATH_MAX];

        found = entry->d_name[0] != '.' &&
                snprintf(folder, sizeof(folder), "%s/%s", parent, entry->d_name) < PATH_MAX &&
                try_folder(folder, version, choice);
    }
    if (folders != NULL) {
        closedir(folders);
    }
    return found;
}

static bool find_version(const char *command, const char *version,
                         struct spw_cli_cudnn_choice *choice)
{
    char parent[PATH_MAX] = "";

    if (spw_cache_folder(/* make */ false, parent, sizeof(parent) - sizeof("/cudnn"))) {
        strcat(parent, "/cudnn");
        if (try_fetched(parent, version, choice)) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(system_folders) / sizeof(*system_folders); i++) {
        if (try_folder(system_folders[i], version, choice)) {
            return true;
        }
    }
    if (parent[0] == '\0') {
        spw_cli_complain(command,
                         "--cudnn=%s: not found (expected a version that the system has, "
                         "or the path of a " LIBRARY " or of its folder)",
                         version);
    } else {
        spw_cli_complain(command,
                         "--cudnn=%s: not found in %s and in the system's folders; spillway "
                         "fetches nothing, but pip does: pip install --no-deps --target "
                         "'%s/%s' 'nvidia-cudnn-cu13==%s.*'",
                         version, parent, parent, version, version);
    }
    return false;
}

/* ---- by path ---- */

static bool find_path(const char *command, const char *text, struct spw_cli_cudnn_choice *choice)
{
    struct stat status;
    bool is_file = stat(text, &status) == 0 && S_ISREG(status.st_mode);

    if (is_file ? realpath(text, choice->path) == NULL : !find_inside(text, choice->path)) {
        spw_cli_complain(command,
                         "--cudnn=%s: there is no " LIBRARY " (expected a version such as 9.26, or "
                         "the path of the library or of its folder)",
                         text);
        return false;
    }
    if (!read_version(choice->path, choice->version, sizeof(choice->version))) {
        spw_cli_complain(command,
                         "--cudnn=%s: cannot be asked without a device (expected cuDNN 9.8 or "
                         "later, whose file only you and root can write)",
                         text);
        return false;
    }
    return true;
}

bool spw_cli_cudnn_choose(const char *command, struct spw_cli_cudnn_choice *ret_choice)
{
    const char *text = spw_option_get(SPW_OPT_SPILLWAY_SIM_CUDNN, NULL, 0).text;

    *ret_choice = (struct spw_cli_cudnn_choice){.path = ""};
    return text == NULL || (is_version(text) ? find_version(command, text, ret_choice)
                                             : find_path(command, text, ret_choice));
}

bool spw_cli_cudnn_choose_for_runs(const char *command)
{
    static struct spw_cli_cudnn_choice choice;

    if (!spw_cli_cudnn_choose(command, &choice)) {
        return false;
    }
    if (choice.path[0] != '\0') {
        setenv(SIM_CUDNN_LIBRARY, choice.path, 1);
        fprintf(stderr, "spillway: cuDNN %s is asked in place of the program's\n", choice.version);
    }
    return true;
}
