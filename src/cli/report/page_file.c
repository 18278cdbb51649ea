#include "cli/report/page_file.h"

#include "cli/console/messages.h"
#include "system/create.h"
#include "system/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns true if the file is a page of spillway, which a new page replaces. */
static bool is_page(const char *path)
{
    char text[1024] = "";
    int fd = spw_fd_open_regular(path);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

    if (fd >= 0) {
        close(fd);
    }
    return length >= 0 && strstr(text, "<title>spillway recording</title>") != NULL;
}

static bool set_target(const char *path, char ret_target[PATH_MAX])
{
    char folder[PATH_MAX];

    if (*path == '/') {
        return snprintf(ret_target, PATH_MAX, "%s", path) < PATH_MAX;
    }
    return getcwd(folder, sizeof(folder)) != NULL &&
           snprintf(ret_target, PATH_MAX, "%s/%s", folder, path) < PATH_MAX;
}

static bool has_folder(const char *target)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%s", target);
    *(strrchr(folder, '/') + 1) = '\0';
    return access(folder, F_OK) == 0;
}

bool spw_cli_page_file_check(const char *command, const char *path, char ret_target[PATH_MAX])
{
    if (!set_target(path, ret_target)) {
        spw_cli_complain(command, "--report: the path is too long");
        return false;
    }
    if (access(ret_target, F_OK) == 0 && !is_page(ret_target)) {
        spw_cli_complain(command,
                         "--report=%s: the file exists, and is no page of spillway (expected a new "
                         "file, or a page to replace)",
                         path);
        return false;
    }
    if (!has_folder(ret_target)) {
        spw_cli_complain(command, "--report=%s: there is no folder for it", path);
        return false;
    }
    return true;
}

bool spw_cli_page_file_write(const char *command, const char *target,
                             const struct spw_cli_pages *pages)
{
    char name[PATH_MAX];
    int fd = spw_create_beside(target, 0644, name, sizeof(name));
    bool written = fd >= 0 && spw_cli_report_pages(command, pages, fd);

    if (fd < 0 || (written && (close(fd) != 0 || rename(name, target) != 0))) {
        spw_cli_complain(command, "--report: %s: %s", target, spw_create_problem(target));
        written = false;
    }
    if (fd >= 0 && !written) {
        (void)unlink(name);
    }
    return written;
}
