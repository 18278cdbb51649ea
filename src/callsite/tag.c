#include "callsite/tag.h"

#include "common/hash.h"
#include "common/utf8.h"

#include <string.h>

_Thread_local struct spw_callsite_tag spw_callsite_this_tag
    __attribute__((tls_model("initial-exec")));

static bool is_word(const char *name, size_t length)
{
    if (length >= SPW_CALLSITE_TAG) {
        return false;
    }
    for (const char *at = name; *at != '\0';) {
        size_t bytes = spw_utf8_length(at);

        if (bytes == 0 || spw_utf8_is_control(at, bytes)) {
            return false;
        }
        at += bytes;
    }
    return true;
}

bool spw_callsite_tag_set(const char *name)
{
    size_t length = name == NULL ? 0 : strnlen(name, SPW_CALLSITE_TAG);
    struct spw_callsite_tag tag = {0};

    if (length > 0) {
        if (!is_word(name, length)) {
            return false;
        }
        memcpy(tag.name, name, length);
        tag.hash = spw_hash_bytes(name, length) | 1;
    }
    spw_callsite_this_tag = tag;
    return true;
}
