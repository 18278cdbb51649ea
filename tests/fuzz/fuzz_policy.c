/* Any bytes as a policy file: read or refused, with complaints in order and on one line each, and
 * then asked about sites. cJSON must read every text that the scan accepts, and alike. */
#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static const struct spw_json json = {.parse = cJSON_ParseWithLengthOpts, .destroy = cJSON_Delete};

static void check_complaints(const struct spw_policy_complaints *complaints)
{
    for (size_t i = 0; i < complaints->count; i++) {
        const struct spw_policy_complaint *complaint = &complaints->items[i];

        FUZZ_REQUIRE(complaint->line >= 1 && complaint->column >= 1);
        FUZZ_REQUIRE(strchr(complaint->text, '\n') == NULL);
        FUZZ_REQUIRE(strstr(complaint->text, ", expected ") != NULL);
        FUZZ_REQUIRE(strncmp(complaint->text, "cJSON", 5) != 0);
        FUZZ_REQUIRE(i == 0 || complaint[-1].offset <= complaint->offset);
    }
}

/* Asks about one site, both ways. */
static void ask(const struct spw_policy *policy, const struct spw_callsite_facts *site,
                const struct spw_request_facts *request)
{
    int rule = spw_policy_decide(policy, spw_policy_candidates(policy, site), request);
    int expected = SPW_POLICY_NO_RULE;

    for (size_t i = 0; i < policy->rule_count && expected < 0; i++) {
        if (spw_policy_mismatch(&policy->rules[i], site, request) == NULL) {
            expected = (int)i;
        }
    }
    FUZZ_REQUIRE(rule == expected);
}

static void ask_all(const struct spw_policy *policy)
{
    static const struct spw_python_frame python[] = {
        {"/v/site-packages/torch/optim/adam.py", "Adam._init_group", 178},
        {"n\xc3\xa4m\xff.py", "f.<locals>.g", 1},
        {NULL, NULL, 0},
    };
    static const struct spw_native_frame native[] = {
        {"libtorch_cpu.so",
         "torch::autograd::generated::AddmmBackward0::apply(std::vector<int>&&)"},
        {"/usr/lib/libx.so.1", "(anonymous namespace)::f(void (*)(int)) const"},
        {NULL, ")"},
    };
    const struct spw_callsite_facts known = {
        .python = python,
        .python_count = 3,
        .native = native,
        .native_count = 3,
        .thread = "pt_autograd_0",
        .tag = "kv-cache",
        .node = "AddmmBackward0",
        .process = "train.py",
        .rank = 3,
        .modules = "GPT/Block",
    };
    const struct spw_callsite_facts unknown = {.rank = -1};
    const struct spw_request_facts first = {1 << 20, 0, "cuMemAllocAsync", 1, 1};
    const struct spw_request_facts nothing = {.device = -1};

    ask(policy, &known, &first);
    ask(policy, &known, &nothing);
    ask(policy, &unknown, &first);
    ask(policy, &unknown, &nothing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spw_policy_complaints complaints;
    struct spw_policy *policy;

    policy = spw_policy_parse((const char *)data, size, &json, &complaints);
    FUZZ_REQUIRE((policy == NULL) == (complaints.count > 0));
    check_complaints(&complaints);
    if (policy != NULL) {
        ask_all(policy);
    }
    spw_policy_complaints_fini(&complaints);
    spw_policy_destroy(policy);
    return 0;
}
