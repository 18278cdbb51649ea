#include "common/utf8.h"

#include <string.h>

size_t spw_utf8_encode(uint32_t code, char *ret_text)
{
    size_t length;

    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        code = 0xFFFD;
    }
    length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6) {
        ret_text[i] = (char)(0x80 | (code & 0x3F));
    }
    ret_text[0] = (char)(length == 1 ? code : (0xF00U >> length) | code);
    return length;
}

uint32_t spw_utf8_code(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0x7FU >> length);

    for (size_t i = 1; i < length; i++) {
        code = code << 6 | (bytes[i] & 0x3FU);
    }
    return code;
}

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
    for (size_t i = 1; i < length; i++) {
        if (bytes[i] >> 6 != 2) {
            return 0;
        }
    }
    code = spw_utf8_code(text, length);
    if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return 0;
    }
    return length;
}

bool spw_utf8_is_control(const char *text, size_t length)
{
    uint32_t code = spw_utf8_code(text, length);

    return code < 0x20 || (code >= 0x7F && code < 0xA0) || /* C0, DEL, C1 */
           (code >= 0x2028 && code <= 0x202E) ||           /* ends of lines, directions */
           (code >= 0x2066 && code <= 0x2069);             /* isolated directions */
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
