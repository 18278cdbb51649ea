#include "cli/advise/where.h"

#include "cli/recording/sites.h"
#include "common/path.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The path within the installed packages, or the file's name. */
static const char *end_of(const char *path)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        const char *at = strstr(path, folders[i]);

        if (at != NULL) {
            return at + strlen(folders[i]);
        }
    }
    return spw_path_name(path);
}

bool spw_cli_advise_where_pattern(const char *name, char ret_pattern[SPW_CLI_ADVISE_NAME])
{
    size_t used = 0;

    for (; *name != '\0' && used + 2 < SPW_CLI_ADVISE_NAME; name++) {
        if (strchr("\\*?[", *name) != NULL) {
            ret_pattern[used++] = '\\';
        }
        ret_pattern[used++] = *name;
    }
    ret_pattern[used] = '\0';
    return *name == '\0';
}

bool spw_cli_advise_where_of(uint32_t site, struct spw_cli_advise_where *ret_where)
{
    static struct spw_callsite_words words;
    const struct spw_python_frame *top = &words.python[0];

    *ret_where = (struct spw_cli_advise_where){.line = 0};
    if (!spw_cli_recorded_sites_describe(site, &words)) {
        return false;
    }
    if (words.facts.python_count > 0) {
        ret_where->line = top->line;
        return top->file != NULL && top->function != NULL && top->line > 0 &&
               spw_cli_advise_where_pattern(end_of(top->file), ret_where->file) &&
               spw_cli_advise_where_pattern(top->function, ret_where->function);
    }
    return words.facts.node != NULL &&
           spw_cli_advise_where_pattern(words.facts.node, ret_where->node);
}

bool spw_cli_advise_where_is_same(const struct spw_cli_advise_where *one,
                                  const struct spw_cli_advise_where *other)
{
    return one->line == other->line && strcmp(one->file, other->file) == 0 &&
           strcmp(one->function, other->function) == 0 && strcmp(one->node, other->node) == 0;
}

bool spw_cli_advise_where_match(const struct spw_cli_advise_where *where, cJSON *match)
{
    cJSON *python;

    if (where->node[0] != '\0') {
        /* Excludes sites that run the same node with Python frames. */
        return cJSON_AddStringToObject(match, "thread", "pt_autograd_*") != NULL &&
               cJSON_AddStringToObject(match, "node", where->node) != NULL;
    }
    python = cJSON_AddObjectToObject(match, "python");
    return python != NULL && cJSON_AddStringToObject(python, "file", where->file) != NULL &&
           cJSON_AddStringToObject(python, "function", where->function) != NULL &&
           cJSON_AddNumberToObject(python, "lines", where->line) != NULL &&
           cJSON_AddStringToObject(python, "frame", "top") != NULL;
}

void spw_cli_advise_where_name(const struct spw_cli_advise_where *where, char ret_name[64])
{
    if (where->node[0] != '\0') {
        (void)snprintf(ret_name, 64, "%.47s", where->node);
    } else {
        (void)snprintf(ret_name, 64, "%.18s-%" PRIu32 "-%.18s", spw_path_name(where->file),
                       where->line, where->function);
    }
    for (char *at = ret_name; *at != '\0'; at++) {
        *at = isalnum((unsigned char)*at) || strchr("-_.", *at) != NULL ? *at : '-';
    }
}
