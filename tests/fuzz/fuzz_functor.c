/* Any bytes as the name of a kernel's functor and what it keeps: refused, or computed. */
#include "sim/pytorch/functor.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* The name ends at the first byte 0; behind it is what the functor keeps. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\0', size);
    size_t length = end == NULL ? size : (size_t)(end - data);
    struct sim_value inputs[SIM_FUNCTOR_INPUTS];
    unsigned char raw[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *kept;
    struct sim_functor functor;

    if (!sim_functor_read((struct sim_cxx_text){(const char *)data, length}, &functor)) {
        return 0;
    }
    FUZZ_REQUIRE(functor.input_count <= SIM_FUNCTOR_INPUTS);
    FUZZ_REQUIRE(functor.operand_count <= SIM_FUNCTOR_OPERANDS);
    kept = calloc(1, functor.bytes);
    if (kept == NULL) {
        return 0;
    }
    if (end != NULL) {
        size_t rest = size - length - 1;

        memcpy(kept, end + 1, rest < functor.bytes ? rest : functor.bytes);
    }
    for (size_t i = 0; i < functor.input_count; i++) {
        inputs[i] = sim_value_load(raw, functor.inputs[i]);
    }
    FUZZ_REQUIRE(sim_functor_apply(&functor, kept, inputs).type == functor.result);
    free(kept);
    return 0;
}
