#include "sim/driver/core/visible.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define UUID_PREFIX "GPU-"

enum { NO_DEVICE = -1 };

/* Devices differ in the first byte, so that short forms of a UUID work. */
void sim_uuid_of(int index, unsigned char ret_uuid[16])
{
    memcpy(ret_uuid, "?spillway-sim-gp", 16);
    ret_uuid[0] = (unsigned char)(0xa0 + index);
}

void sim_uuid_text(int index, char ret_text[SIM_UUID_TEXT])
{
    unsigned char uuid[16];
    size_t used = (size_t)snprintf(ret_text, SIM_UUID_TEXT, UUID_PREFIX);

    sim_uuid_of(index, uuid);
    for (size_t i = 0; i < sizeof(uuid); i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

        used += (size_t)snprintf(ret_text + used, SIM_UUID_TEXT - used, "%s%02x", dash, uuid[i]);
    }
}

/* The only device whose UUID begins with the first `length` bytes of `text`; NO_DEVICE if none or
 * several devices match. */
static int find_uuid(const char *text, size_t length, int count)
{
    char uuid[SIM_UUID_TEXT];
    int found = NO_DEVICE;

    for (int i = 0; i < count; i++) {
        sim_uuid_text(i, uuid);
        if (length >= SIM_UUID_TEXT || strncasecmp(uuid, text, length) != 0) {
            continue;
        }
        if (found != NO_DEVICE) {
            return NO_DEVICE;
        }
        found = i;
    }
    return found;
}

static int find_index(const char *text, int count)
{
    int index = 0;

    text += *text == '+';
    if (*text < '0' || *text > '9') {
        return NO_DEVICE;
    }
    for (; *text >= '0' && *text <= '9' && index < count; text++) {
        index = index * 10 + (*text - '0');
    }
    return index < count ? index : NO_DEVICE;
}

int sim_visible_devices(const char *list, int count, int *ret_indices)
{
    bool by_uuid = list != NULL && strncmp(list, UUID_PREFIX, strlen(UUID_PREFIX)) == 0;
    int visible = 0;

    if (list == NULL) {
        for (int i = 0; i < count; i++) {
            ret_indices[i] = i;
        }
        return count;
    }
    for (;;) {
        size_t length = strcspn(list, ", \t");
        int index = by_uuid ? find_uuid(list, length, count) : find_index(list, count);

        if (index == NO_DEVICE || (by_uuid && length <= strlen(UUID_PREFIX))) {
            return visible;
        }
        for (int i = 0; i < visible; i++) {
            if (ret_indices[i] == index) {
                return 0;
            }
        }
        ret_indices[visible++] = index;
        list += strcspn(list, ",");
        if (*list == '\0') {
            return visible;
        }
        list++;
        list += strspn(list, " \t");
    }
}
