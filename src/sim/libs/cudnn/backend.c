/* cuDNN's backend interface: the program creates descriptors, sets their attributes, finalizes,
 * queries and executes them. The heuristics return the engines that NVIDIA's cuDNN names. If it
 * does not answer, they return one engine for each graph. Engines have no knobs. */
#include <stdlib.h>
#include <string.h>

#include "sim/libs/cudnn/graph.h"
#include "sim/libs/cudnn/question.h"

SIM_SHIM_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t descriptorType, cudnnBackendDescriptor_t *descriptor)
{
    *descriptor = sim_cudnn_descriptor_create(descriptorType);
    return *descriptor != NULL ? CUDNN_STATUS_SUCCESS
                               : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    if (descriptor != NULL) {
        sim_cudnn_descriptor_unref(descriptor);
    }
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                       cudnnBackendAttributeName_t attributeName,
                                                       cudnnBackendAttributeType_t attributeType,
                                                       int64_t elementCount,
                                                       const void *arrayOfElements)
{
    if (descriptor == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    return sim_cudnn_descriptor_set(descriptor, attributeName, attributeType, elementCount,
                                    arrayOfElements);
}

/* The operation graph of an execution plan or an engine configuration; NULL if it is incomplete. */
static const struct sim_cudnn_descriptor *graph_of(const struct sim_cudnn_descriptor *descriptor)
{
    static const cudnnBackendAttributeName_t path[] = {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                                       CUDNN_ATTR_ENGINECFG_ENGINE,
                                                       CUDNN_ATTR_ENGINE_OPERATION_GRAPH};
    size_t step = descriptor->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ? 0 : 1;

    while (descriptor != NULL && step < sizeof(path) / sizeof(path[0])) {
        descriptor =
            sim_cudnn_descriptor_child(sim_cudnn_descriptor_find(descriptor, path[step]), 0);
        step++;
    }
    return descriptor;
}

/* Sets an int64_t attribute that the library computes. */
static cudnnStatus_t compute(struct sim_cudnn_descriptor *descriptor,
                             cudnnBackendAttributeName_t name, int64_t value)
{
    return sim_cudnn_descriptor_set(descriptor, name, CUDNN_TYPE_INT64, 1, &value);
}

/* Computes the attributes of a complete engine configuration. */
static cudnnStatus_t finish_config(struct sim_cudnn_descriptor *config, int64_t workspace_bytes)
{
    int32_t shared_bytes = 0;
    cudnnStatus_t status = compute(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, workspace_bytes);

    if (status == CUDNN_STATUS_SUCCESS) {
        status = sim_cudnn_descriptor_set(config, CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED,
                                          CUDNN_TYPE_INT32, 1, &shared_bytes);
    }
    config->finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

/* A configuration of an engine that the program itself chooses. */
static cudnnStatus_t finish_own_config(struct sim_cudnn_descriptor *config)
{
    const struct sim_cudnn_descriptor *graph = graph_of(config);

    return graph == NULL ? CUDNN_STATUS_BAD_PARAM
                         : finish_config(config, sim_cudnn_graph_workspace_bytes(graph));
}

static cudnnStatus_t finish_plan(struct sim_cudnn_descriptor *plan)
{
    const struct sim_cudnn_descriptor *config = sim_cudnn_descriptor_child(
        sim_cudnn_descriptor_find(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG), 0);

    return graph_of(plan) == NULL ? CUDNN_STATUS_BAD_PARAM
                                  : compute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                            sim_cudnn_descriptor_integer(
                                                config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, 0));
}

/* ---- heuristics ---- */

/* Sets an attribute to the members of a set of notes. */
static cudnnStatus_t set_notes(struct sim_cudnn_descriptor *engine,
                               cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                               uint32_t set)
{
    int32_t notes[32];
    int64_t count = 0;

    for (int32_t note = 0; note < 32; note++) {
        if (set >> note & 1) {
            notes[count++] = note;
        }
    }
    return sim_cudnn_descriptor_set(engine, name, type, count, notes);
}

static cudnnStatus_t fill_engine(struct sim_cudnn_descriptor *self,
                                 struct sim_cudnn_descriptor *graph,
                                 const struct sim_cudnn_engine *engine)
{
    cudnnStatus_t status = sim_cudnn_descriptor_set(self, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);

    if (status == CUDNN_STATUS_SUCCESS) {
        status = compute(self, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine->index);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = set_notes(self, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                           engine->numerical_notes);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = set_notes(self, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                           engine->behavior_notes);
    }
    self->finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

/* Returns a finalized configuration of the engine. NULL without host memory. */
static struct sim_cudnn_descriptor *make_config(struct sim_cudnn_descriptor *graph,
                                                const struct sim_cudnn_engine *engine)
{
    struct sim_cudnn_descriptor *self =
        sim_cudnn_descriptor_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    struct sim_cudnn_descriptor *config =
        sim_cudnn_descriptor_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    bool good =
        self != NULL && config != NULL &&
        fill_engine(self, graph, engine) == CUDNN_STATUS_SUCCESS &&
        sim_cudnn_descriptor_set(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &self) == CUDNN_STATUS_SUCCESS &&
        finish_config(config, engine->workspace_bytes) == CUDNN_STATUS_SUCCESS;

    if (self != NULL) {
        sim_cudnn_descriptor_unref(self);
    }
    if (config != NULL && !good) {
        sim_cudnn_descriptor_unref(config);
    }
    return good ? config : NULL;
}

/* Sets the results of the heuristics: a configuration of each engine. */
static cudnnStatus_t set_results(struct sim_cudnn_descriptor *heuristics,
                                 struct sim_cudnn_descriptor *graph,
                                 const struct sim_cudnn_engine *engines, size_t count)
{
    struct sim_cudnn_descriptor **configs = calloc(count, sizeof(*configs));
    cudnnStatus_t status = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    size_t made = 0;

    while (configs != NULL && made < count &&
           (configs[made] = make_config(graph, &engines[made])) != NULL) {
        made++;
    }
    if (made == count) {
        status = sim_cudnn_descriptor_set(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, (int64_t)made, configs);
    }
    while (made > 0) {
        sim_cudnn_descriptor_unref(configs[--made]);
    }
    free(configs);
    return status;
}

static cudnnStatus_t find_engines(struct sim_cudnn_descriptor *heuristics, const void *caller)
{
    struct sim_cudnn_descriptor *graph = sim_cudnn_descriptor_child(
        sim_cudnn_descriptor_find(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), 0);
    struct sim_cudnn_engine guess = {.index = 0}, *engines;
    cudnnStatus_t status;
    size_t count;

    if (graph == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    count = sim_cudnn_question_ask(heuristics, caller, &engines);
    if (count == 0) {
        guess.workspace_bytes = sim_cudnn_graph_workspace_bytes(graph);
        status = set_results(heuristics, graph, &guess, 1);
    } else {
        status = set_results(heuristics, graph, engines, count);
    }
    free(engines);
    return status;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct sim_cudnn_descriptor *self = descriptor;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    if (self == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    switch ((int)self->kind) {
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        status = compute(self, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 1);
        break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        status = find_engines(self, __builtin_return_address(0));
        break;
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
        status = finish_own_config(self);
        break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        status = finish_plan(self);
        break;
    default:
        break;
    }
    self->finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

/* Copies descriptors into descriptors that the caller created. */
static cudnnStatus_t hand_out(const struct sim_cudnn_attribute *attribute, int64_t count,
                              struct sim_cudnn_descriptor *const *to)
{
    for (int64_t i = 0; i < count; i++) {
        struct sim_cudnn_descriptor *from = sim_cudnn_descriptor_child(attribute, i);
        cudnnStatus_t status =
            to[i] == NULL ? CUDNN_STATUS_BAD_PARAM : sim_cudnn_descriptor_assign(to[i], from);

        if (status != CUDNN_STATUS_SUCCESS) {
            return status;
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                                       cudnnBackendAttributeName_t attributeName,
                                                       cudnnBackendAttributeType_t attributeType,
                                                       int64_t requestedElementCount,
                                                       int64_t *elementCount, void *arrayOfElements)
{
    const struct sim_cudnn_descriptor *self = descriptor;
    const struct sim_cudnn_attribute *attribute;
    int64_t count;

    if (self == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    if (!self->finalized) {
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    }
    /* An attribute that was never set is an empty list: an engine has no knobs and no notes. */
    attribute = sim_cudnn_descriptor_find(self, attributeName);
    count = attribute == NULL ? 0 : attribute->count;
    /* As cuDNN 9.19 and 9.26: with an array, the number of elements that are written to it. */
    if (arrayOfElements != NULL && count > requestedElementCount) {
        count = requestedElementCount;
    }
    if (elementCount != NULL) {
        *elementCount = count;
    }
    if (attribute == NULL || arrayOfElements == NULL || requestedElementCount == 0) {
        return CUDNN_STATUS_SUCCESS;
    }
    if (attribute->type != attributeType) {
        return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    }
    if (attributeType == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        return hand_out(attribute, count, arrayOfElements);
    }
    memcpy(arrayOfElements, attribute->data,
           (size_t)count * sim_cudnn_descriptor_element_bytes(attributeType));
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                                  cudnnBackendDescriptor_t executionPlan,
                                                  cudnnBackendDescriptor_t variantPack)
{
    const struct sim_cudnn_descriptor *plan = executionPlan;
    const struct sim_cudnn_descriptor *pack = variantPack;
    struct sim_shim_work work = {.count = 0};
    size_t workspace_bytes;
    const void *workspace;
    cudnnStatus_t status;

    if (handle == NULL || plan == NULL || pack == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    if (!plan->finalized || !pack->finalized || graph_of(plan) == NULL) {
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    }
    status = sim_cudnn_graph_add(graph_of(plan), pack, &work);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    workspace =
        (const void *)sim_cudnn_descriptor_integer(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0);
    workspace_bytes =
        (size_t)sim_cudnn_descriptor_integer(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 0);
    sim_cudnn_graph_demand(graph_of(plan), workspace_bytes, &work);
    sim_shim_add_write(&work, workspace, workspace_bytes);
    return sim_cudnn_launch(handle, sim_cudnn_graph_kernel(graph_of(plan)), &work);
}
