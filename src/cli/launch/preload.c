#include "cli/launch/preload.h"

#include "common/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS ": "

static bool is_sanitizer(const char *path)
{
    const char *name = spw_path_name(path);

    return strncmp(name, "libasan.", 8) == 0 || strncmp(name, "libtsan.", 8) == 0 ||
           strncmp(name, "libclang_rt.", 12) == 0;
}

static bool is_named(const char *path, const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(spw_path_name(path), spw_path_name(paths[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void append(FILE *list, const char *path)
{
    fprintf(list, "%s%s", ftell(list) > 0 ? ":" : "", path);
}

/* Appends the libraries of the current list that are not in `paths`: either the sanitizers, or all
 * other libraries. */
static void append_present(FILE *list, const char *present, bool sanitizers,
                           const char *const *paths, size_t count)
{
    char *copy = strdup(present);
    char *rest = copy;
    char *path;

    while (copy != NULL && (path = strsep(&rest, SEPARATORS)) != NULL) {
        if (*path != '\0' && is_sanitizer(path) == sanitizers && !is_named(path, paths, count)) {
            append(list, path);
        }
    }
    free(copy);
}

/* Removes `paths` from LD_PRELOAD. If `add` is true, then inserts them at the front, after the
 * sanitizers. */
static void rewrite(const char *const *paths, size_t count, bool add)
{
    const char *present = getenv("LD_PRELOAD");
    char *text = NULL;
    size_t length = 0;
    FILE *list = open_memstream(&text, &length);

    if (list == NULL) {
        return;
    }
    present = present != NULL ? present : "";
    append_present(list, present, true, paths, count);
    for (size_t i = 0; add && i < count; i++) {
        append(list, paths[i]);
    }
    append_present(list, present, false, paths, count);
    fclose(list);
    if (*text != '\0') {
        setenv("LD_PRELOAD", text, 1);
    } else {
        unsetenv("LD_PRELOAD");
    }
    free(text);
}

void spw_cli_preload_add(const char *const *paths, size_t count)
{
    rewrite(paths, count, true);
}

bool spw_cli_preload_remove(const char *name)
{
    const char *present = getenv("LD_PRELOAD");

    if (present == NULL || strstr(present, name) == NULL) {
        return false;
    }
    rewrite(&name, 1, false);
    return true;
}
