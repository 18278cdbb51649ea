#include "cli/keep/store.h"

#include "cli/console/messages.h"
#include "policy/policy.h"
#include "system/cache.h"
#include "system/create.h"
#include "system/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct spw_json linked_json = {.parse = cJSON_ParseWithLengthOpts,
                                            .destroy = cJSON_Delete};

static const char chosen_begin[] = "chosen: ";

/* ---- the folder ---- */

/* Opens a file or a folder that only the user may write. Returns -1, with a reason, if it is not.
 * Without a file, the reason is "". */
static int open_own(const char *path, mode_t kind, char why[SPW_CLI_KEEP_WHY])
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = open(path, kind == S_IFDIR ? flags | O_DIRECTORY : flags);

    why[0] = '\0';
    if (fd >= 0 && spw_fd_is_own(fd, kind)) {
        return fd;
    }
    if (fd >= 0 || errno != ENOENT) {
        (void)snprintf(why, SPW_CLI_KEEP_WHY, "%.400s %s", path,
                       fd >= 0 ? "belongs to another user, or others may write it"
                       : errno == ELOOP || errno == ENOTDIR
                           ? "is a link, or not what is expected there"
                           : strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

static bool is_own_folder(const char *path, char why[SPW_CLI_KEEP_WHY])
{
    int fd = open_own(path, S_IFDIR, why);

    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

bool spw_cli_keep_folder(bool make, char ret_folder[PATH_MAX], char why[SPW_CLI_KEEP_WHY])
{
    char cache[PATH_MAX - sizeof("/fit")];

    if (!spw_cache_folder(make, cache, sizeof(cache))) {
        (void)snprintf(why, SPW_CLI_KEEP_WHY,
                       "there is no cache folder (HOME or XDG_CACHE_HOME, with a folder that can "
                       "be written)");
        return false;
    }
    (void)snprintf(ret_folder, PATH_MAX, "%s/fit", cache);
    if (!is_own_folder(cache, why)) {
        return false;
    }
    if (make && mkdir(ret_folder, 0700) != 0 && errno != EEXIST) {
        (void)snprintf(why, SPW_CLI_KEEP_WHY, "%.400s: %s", ret_folder, strerror(errno));
        return false;
    }
    return is_own_folder(ret_folder, why);
}

/* ---- reading ---- */

/* Reads a whole file. The caller frees the text. Returns NULL, with a reason, if it cannot. */
static char *read_text(const char *path, char why[SPW_CLI_KEEP_WHY])
{
    int fd = open_own(path, S_IFREG, why);
    char *text = fd >= 0 ? calloc(1, SPW_POLICY_FILE_BYTES + 1) : NULL;
    off_t bytes = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;

    if (fd < 0) {
        return NULL;
    }
    if (text == NULL || bytes < 0 || bytes > SPW_POLICY_FILE_BYTES ||
        !spw_fd_read_at(fd, text, (size_t)bytes, 0)) {
        (void)snprintf(why, SPW_CLI_KEEP_WHY, "%.400s cannot be read", path);
        free(text);
        text = NULL;
    }
    close(fd);
    return text;
}

/* Takes the lines that spw_cli_kept_write has written. */
static bool take_comment(const struct spw_policy *policy, struct spw_cli_kept *kept)
{
    const char *const *lines = policy->file.comment.items;
    bool has_state = false;

    for (size_t i = 0; i < policy->file.comment.count; i++) {
        has_state |= spw_cli_keep_state_read(lines[i], &kept->state);
        if (strncmp(lines[i], chosen_begin, strlen(chosen_begin)) == 0) {
            (void)snprintf(kept->chosen, sizeof(kept->chosen), "%s",
                           lines[i] + strlen(chosen_begin));
        }
    }
    kept->has_rules = policy->rule_count > 0;
    return has_state;
}

bool spw_cli_kept_read(const char *path, struct spw_cli_kept *ret_kept, char why[SPW_CLI_KEEP_WHY])
{
    struct spw_policy_complaints complaints = {0};
    char *text = read_text(path, why);
    struct spw_policy *policy =
        text != NULL ? spw_policy_parse(text, strlen(text), &linked_json, &complaints) : NULL;
    bool good = false;

    memset(ret_kept, 0, sizeof(*ret_kept));
    (void)snprintf(ret_kept->path, sizeof(ret_kept->path), "%s", path);
    good = policy != NULL && take_comment(policy, ret_kept);
    if (text != NULL && !good) {
        (void)snprintf(why, SPW_CLI_KEEP_WHY, "%.400s is no kept choice%s%.64s", path,
                       complaints.count > 0 ? ": " : "",
                       complaints.count > 0 ? complaints.items[0].text : "");
    }
    spw_policy_complaints_fini(&complaints);
    spw_policy_destroy(policy);
    free(text);
    return good;
}

/* ---- writing ---- */

static bool add_line(cJSON *list, const struct spw_cli_line *line)
{
    cJSON *text = cJSON_CreateString(line->text);

    return text != NULL && cJSON_AddItemToArray(list, text);
}

/* Makes the comment of the file. Returns NULL if memory runs out. */
static cJSON *make_comment(const struct spw_cli_kept *kept, const struct spw_cli_kept_for *what)
{
    struct spw_cli_line head = {""}, command = {"command:"}, folder = {""}, device = {""},
                        script = {""}, chosen = {""}, state = {""};
    cJSON *list = cJSON_CreateArray();

    spw_cli_line_add(&head, "Kept by spillway run --fit for the next run of this command; spillway "
                            "policy forget -- COMMAND removes it.");
    for (char *const *word = what->arguments; *word != NULL; word++) {
        spw_cli_line_add(&command, " %.200s", *word);
    }
    spw_cli_line_add(&folder, "folder: %s", what->folder);
    spw_cli_line_add(&device, "device: %s%s%s", what->card, what->limit != NULL ? ", limit " : "",
                     what->limit != NULL ? what->limit : "");
    spw_cli_line_add(&script, "script: %s", *what->script != '\0' ? what->script : "not known");
    spw_cli_line_add(&chosen, "%s%s", chosen_begin, kept->chosen);
    spw_cli_keep_state_write(&kept->state, state.text);
    if (list == NULL || !add_line(list, &head) || !add_line(list, &command) ||
        !add_line(list, &folder) || !add_line(list, &device) || !add_line(list, &script) ||
        !add_line(list, &chosen) || !add_line(list, &state)) {
        cJSON_Delete(list);
        return NULL;
    }
    return list;
}

/* Makes the text of the file. Deletes the policy. Returns NULL if memory runs out. */
static char *make_text(const struct spw_cli_kept *kept, const struct spw_cli_kept_for *what,
                       cJSON *policy)
{
    cJSON *json = cJSON_CreateObject(), *comment = make_comment(kept, what);
    cJSON *rules = policy != NULL ? cJSON_DetachItemFromObject(policy, "rules") : NULL;
    char *text = NULL;

    rules = rules != NULL ? rules : cJSON_CreateArray();
    if (json != NULL && comment != NULL && rules != NULL &&
        cJSON_AddNumberToObject(json, "version", 1) != NULL) {
        (void)cJSON_AddItemToObject(json, "comment", comment);
        (void)cJSON_AddItemToObject(json, "rules", rules);
        text = cJSON_Print(json);
    } else {
        cJSON_Delete(comment);
        cJSON_Delete(rules);
    }
    cJSON_Delete(json);
    cJSON_Delete(policy);
    return text;
}

bool spw_cli_kept_write(const struct spw_cli_kept *kept, const struct spw_cli_kept_for *what,
                        cJSON *policy, char why[SPW_CLI_KEEP_WHY])
{
    char *text = make_text(kept, what, policy);
    char name[PATH_MAX];
    int fd = text != NULL ? spw_create_beside(kept->path, 0600, name, sizeof(name)) : -1;
    bool good = fd >= 0 && spw_fd_write(fd, text, strlen(text));

    if (fd >= 0) {
        good = close(fd) == 0 && good && rename(name, kept->path) == 0;
    }
    if (!good) {
        (void)snprintf(why, SPW_CLI_KEEP_WHY, "%.400s: %s", kept->path,
                       text == NULL ? "not enough memory" : spw_create_problem(kept->path));
        if (fd >= 0) {
            (void)unlink(name);
        }
        (void)unlink(kept->path);
    }
    cJSON_free(text);
    return good;
}

/* ---- all files ---- */

void spw_cli_kept_each(const char *folder, uint64_t command,
                       void (*visit)(const char *path, void *context), void *context)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    char begin[32], path[PATH_MAX];

    (void)snprintf(begin, sizeof(begin), "%016" PRIx64 "-", command);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;

        if (*name != '.' && (command == 0 || strncmp(name, begin, strlen(begin)) == 0) &&
            snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path)) {
            visit(path, context);
        }
        free(entries[i]);
    }
    free(entries);
}
