#include "cli/recording/marks.h"

#include "common/utf8.h"

#include <stdio.h>
#include <string.h>

void spw_cli_mark_name(const struct spw_cli_event *event, char ret_name[SPW_CLI_MARK_NAME])
{
    snprintf(ret_name, SPW_CLI_MARK_NAME, "%.*s", (int)event->text.length, event->text.bytes);
    spw_utf8_plain(ret_name, /* keep */ "");
}

/* Finds a part by its name. If `add` is true, adds a missing part. Returns NULL if the part is not
 * found or if there is no room. */
static struct spw_cli_mark *find(struct spw_cli_marks *marks, const char *name, bool add)
{
    struct spw_cli_mark *mark;

    for (unsigned i = 0; i < marks->count; i++) {
        if (strcmp(marks->list[i].name, name) == 0) {
            return &marks->list[i];
        }
    }
    if (!add) {
        return NULL;
    }
    if (marks->count == SPW_CLI_MARKS) {
        marks->lost++;
        return NULL;
    }
    mark = &marks->list[marks->count++];
    memcpy(mark->name, name, sizeof(mark->name));
    return mark;
}

static void begin(struct spw_cli_marks *marks, struct spw_cli_mark *mark, uint64_t time,
                  const uint64_t live[SPW_DEVICES_MAX])
{
    mark->count++;
    if (mark->open++ > 0) {
        return;
    }
    mark->began = time;
    marks->open++;
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        mark->peak[i] = live[i] > mark->peak[i] ? live[i] : mark->peak[i];
    }
}

void spw_cli_marks_take(struct spw_cli_marks *marks, const struct spw_cli_event *event,
                        const uint64_t live[SPW_DEVICES_MAX])
{
    char name[SPW_CLI_MARK_NAME];
    struct spw_cli_mark *mark;

    spw_cli_mark_name(event, name);
    mark = find(marks, name, /* add */ event->number != 0);
    if (mark == NULL) {
        return;
    }
    if (event->number != 0) {
        begin(marks, mark, event->time, live);
    } else if (mark->open > 0 && --mark->open == 0) {
        mark->time += event->time - mark->began;
        marks->open--;
    }
}

void spw_cli_marks_rise(struct spw_cli_marks *marks, int device, uint64_t live)
{
    if (marks->open == 0) {
        return;
    }
    for (unsigned i = 0; i < marks->count; i++) {
        struct spw_cli_mark *mark = &marks->list[i];

        if (mark->open > 0 && live > mark->peak[device]) {
            mark->peak[device] = live;
        }
    }
}

uint64_t spw_cli_mark_time(const struct spw_cli_mark *mark, uint64_t now)
{
    return mark->time + (mark->open > 0 && now > mark->began ? now - mark->began : 0);
}
