#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

size_t spw_utf8_length(const char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = bytes[0] < 0x80       ? 1
                    : bytes[0] >> 5 == 6  ? 2
                    : bytes[0] >> 4 == 14 ? 3
                    : bytes[0] >> 3 == 30 ? 4
                                          : 0;
    uint32_t code;

    if (length < 2) {
        return length;
    }
    code = bytes[0] & (0x7FU >> length);
    for (size_t i = 1; i < length; i++) {
        if (bytes[i] >> 6 != 2) {
            return 0;
        }
        code = code << 6 | (bytes[i] & 0x3FU);
    }
    if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return 0;
    }
    return length;
}

bool spw_utf8_is_control(const char *text, size_t length)
{
    unsigned char first = (unsigned char)text[0];

    return (length == 1 && (first < 0x20 || first == 0x7F)) ||
           (length == 2 && first == 0xC2 && (unsigned char)text[1] < 0xA0);
}

void spw_utf8_plain(char *text, const char *keep)
{
    char *to = text;

    while (*text != '\0') {
        size_t length = spw_utf8_length(text);
        bool kept = length == 1 && strchr(keep, *text) != NULL;

        if (length == 0 || (!kept && spw_utf8_is_control(text, length))) {
            *to++ = '?';
        } else {
            memmove(to, text, length);
            to += length;
        }
        text += length > 0 ? length : 1;
    }
    *to = '\0';
}
