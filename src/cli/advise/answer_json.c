#include "cli/advise/answer_json.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/report/page_file.h"

#include <stdio.h>

static void add_curve(cJSON *json, const struct spw_cli_advise_settings *settings)
{
    cJSON *list = settings->point_count > 1 ? cJSON_AddArrayToObject(json, "curve") : NULL;

    for (size_t i = 0; list != NULL && i < settings->point_count; i++) {
        const struct spw_cli_advise_point *point = &settings->points[i];
        cJSON *object = cJSON_CreateObject();

        spw_cli_json_add(object, "blocks", point->count);
        spw_cli_json_add(object, "peak_bytes", point->peak);
        (void)cJSON_AddNumberToObject(
            object, "step_ratio",
            spw_cli_advise_answer_ratio(settings->goal.step_ns, point->cost_ns));
        (void)cJSON_AddItemToArray(list, object);
    }
}

cJSON *spw_cli_advise_json_make(const struct spw_cli_advise_settings *settings,
                                enum spw_cli_advise_answer answer, uint64_t peak_bytes)
{
    static const char *const answers[] = {[SPW_CLI_ADVISE_FITS] = "fits",
                                          [SPW_CLI_ADVISE_PLACED] = "placed",
                                          [SPW_CLI_ADVISE_IMPOSSIBLE] = "impossible"};
    cJSON *json = cJSON_CreateObject();

    (void)cJSON_AddStringToObject(json, "answer", answers[answer]);
    spw_cli_json_add(json, "budget_bytes", settings->goal.budget_bytes);
    spw_cli_json_add(json, "peak_bytes", peak_bytes);
    spw_cli_json_add(json, "step_ns", settings->goal.step_ns);
    add_curve(json, settings);
    return json;
}

void spw_cli_advise_json_figures(cJSON *json, const char *key, uint64_t device_bytes,
                                 uint64_t host_bytes, uint64_t moved_bytes, double ratio)
{
    cJSON *object = cJSON_AddObjectToObject(json, key);

    spw_cli_json_add(object, "device_bytes", device_bytes);
    spw_cli_json_add(object, "host_bytes", host_bytes);
    spw_cli_json_add(object, "moved_bytes", moved_bytes);
    (void)cJSON_AddNumberToObject(object, "step_ratio", ratio);
}

cJSON *spw_cli_advise_json_plan(cJSON *json, const char *way,
                                const struct spw_cli_advise_settings *settings,
                                const struct spw_cli_advise_plan *plan)
{
    uint64_t step_ns = settings->goal.step_ns;
    cJSON *object = cJSON_AddObjectToObject(json, way);

    spw_cli_advise_json_figures(object, "predicted", plan->device_bytes, plan->host_bytes, 0,
                                spw_cli_advise_answer_ratio(step_ns, plan->cost_ns));
    if (plan->again_count > 0) {
        spw_cli_json_add(object, "modules", plan->again_count);
        spw_cli_json_add(object, "spilled_bytes", plan->spilled_bytes);
    } else {
        (void)cJSON_AddNumberToObject(object, "least_step_ratio",
                                      spw_cli_advise_answer_ratio(step_ns, plan->bound_ns));
    }
    return object;
}

bool spw_cli_advise_json_page(const struct spw_cli_advise_settings *settings, const char *recording,
                              const cJSON *answer)
{
    char *text = cJSON_PrintUnformatted(answer);
    const struct spw_cli_pages pages = {.paths = &recording,
                                        .count = 1,
                                        .shown = SPW_CLI_SHOWN_KNOWN,
                                        .exit_code = settings->ample != NULL ? settings->ample->code
                                                                             : SPW_CLI_EXIT_UNKNOWN,
                                        .advice = text};
    bool good = text != NULL && spw_cli_page_file_write("advise", settings->report, &pages);

    if (good) {
        spw_cli_print(stdout, "report: %s\n", settings->report);
    }
    cJSON_free(text);
    return good;
}
