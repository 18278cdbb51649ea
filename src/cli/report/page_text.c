#include "cli/report/page_text.h"

#include "common/utf8.h"

#include <stdio.h>
#include <string.h>

void spw_cli_page_string(struct spw_writer *out, const char *text)
{
    char character[8] = "";

    spw_write(out, "\"");
    while (*text != '\0') {
        size_t length = spw_utf8_length(text);

        if (length == 0 || spw_utf8_is_control(text, length) || *text == '<' || *text == '>' ||
            *text == '&' || *text == '"' || *text == '\\') {
            snprintf(character, sizeof(character), "\\u%04x", (unsigned)(uint8_t)*text);
            length = length == 0 ? 1 : length;
            spw_write(out, length == 1 ? character : "?");
        } else {
            memcpy(character, text, length);
            character[length] = '\0';
            spw_write(out, character);
        }
        text += length;
    }
    spw_write(out, "\"");
}

void spw_cli_page_text(struct spw_writer *out, const char *key, const char *text)
{
    spw_write_key(out, key);
    spw_cli_page_string(out, text);
}
