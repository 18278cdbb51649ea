#include "cli/fit/search.h"

struct spw_cli_fit_row spw_cli_fit_search(struct spw_cli_fit_session *session,
                                          const struct spw_gpu_profile *card)
{
    struct spw_cli_fit_row row = {.card = card};
    size_t low = 0, high = session->variation.count; /* the first `low` values fit */

    if (session->variation.name == NULL) {
        row.answer = spw_cli_fit_ask(session, card, 0);
        row.has_value = true;
        return row;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct spw_cli_fit_answer answer = spw_cli_fit_ask(session, card, middle);

        if (answer.verdict == SPW_CLI_FIT_UNKNOWN) {
            row.answer.verdict = row.has_value ? row.answer.verdict : SPW_CLI_FIT_UNKNOWN;
            return row;
        }
        if (spw_cli_fit_is_good(&answer)) {
            low = middle + 1;
            row.value = middle;
            row.has_value = true;
            row.answer = answer;
        } else {
            high = middle;
            row.too_large = middle;
            row.has_too_large = true;
            row.too_large_failed = answer.verdict == SPW_CLI_FIT_FAILED;
            row.answer = row.has_value ? row.answer : answer;
        }
    }
    return row;
}
