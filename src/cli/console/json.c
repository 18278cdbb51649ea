#include "cli/console/json.h"

#include "cli/console/messages.h"
#include "common/grow.h"
#include "common/utf8.h"
#include "system/create.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static char *read_all(FILE *file)
{
    size_t used = 0, capacity = 1 << 16;
    char *text = malloc(capacity);

    while (text != NULL) {
        size_t length = fread(text + used, 1, capacity - used - 1, file);

        used += length;
        text[used] = '\0';
        if (length == 0) {
            return text;
        }
        if (capacity - used > 1) {
            continue;
        }
        capacity *= 2;
        if (!SPW_RESIZE(&text, capacity)) {
            break;
        }
    }
    free(text);
    return NULL;
}

bool spw_cli_json_read(const char *path, cJSON **ret_json)
{
    FILE *file = fopen(path, "re");
    int problem;
    char *text;

    if (file == NULL) {
        return false;
    }
    text = read_all(file);
    problem = ferror(file) ? errno : ENOMEM; /* for instance, the path is a folder */
    if (text == NULL || ferror(file)) {
        free(text);
        (void)fclose(file);
        errno = problem;
        return false;
    }
    (void)fclose(file);
    *ret_json = cJSON_Parse(text);
    free(text);
    return true;
}

uint64_t spw_cli_json_number(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsNumber(value) && value->valuedouble > 0 ? (uint64_t)value->valuedouble : 0;
}

const char *spw_cli_json_text(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsString(value) && value->valuestring[0] != '\0' ? value->valuestring : NULL;
}

const cJSON *spw_cli_json_list(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsArray(value) ? value : NULL;
}

/* The caller frees the text. Returns NULL if memory runs out. */
static char *print(cJSON *json, bool one_line)
{
    char *text = one_line ? cJSON_PrintUnformatted(json) : cJSON_Print(json);

    if (text != NULL) {
        spw_utf8_plain(text, /* keep */ "\n\t");
    }
    cJSON_Delete(json);
    return text;
}

void spw_cli_json_print(cJSON *json, bool one_line)
{
    char *text = print(json, one_line);

    puts(text != NULL ? text : "{}");
    cJSON_free(text);
}

bool spw_cli_json_write(cJSON *json, const char *path)
{
    char *text = print(json, false);
    FILE *file = text == NULL ? NULL : spw_create_stream(path);
    bool good = file != NULL && fprintf(file, "%s\n", text) > 0;

    errno = text == NULL ? ENOMEM : errno;
    if (file != NULL) {
        good = fclose(file) == 0 && good;
    }
    cJSON_free(text);
    return good;
}

bool spw_cli_json_save(const char *command, cJSON *json, const char *path)
{
    bool good = spw_cli_json_write(json, path);

    if (!good) {
        spw_cli_complain(command, "--json=%s: %s", path, spw_create_problem(path));
    }
    return good;
}

void spw_cli_json_add(cJSON *object, const char *key, uint64_t number)
{
    (void)cJSON_AddNumberToObject(object, key, (double)number);
}
