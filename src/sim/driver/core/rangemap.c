#include "sim/driver/core/rangemap.h"

#include "common/hash.h"

static uint64_t largest_of(const struct sim_range *node)
{
    return node != NULL ? node->largest : 0;
}

static void update(struct sim_range *node)
{
    uint64_t below = largest_of(node->left);
    uint64_t right = largest_of(node->right);

    if (right > below) {
        below = right;
    }
    node->largest = below > node->size ? below : node->size;
}

/* The priority is a hash of the address: balanced in expectation, and the same in every run. */
static uint32_t priority_of(uint64_t start)
{
    uint64_t x = spw_hash_word(start);

    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(x >> 32);
}

/* Splits a tree into the ranges that start below `start` and the rest. */
static void split(struct sim_range *tree, uint64_t start, struct sim_range **ret_below,
                  struct sim_range **ret_rest)
{
    if (tree == NULL) {
        *ret_below = NULL;
        *ret_rest = NULL;
        return;
    }
    if (tree->start < start) {
        split(tree->right, start, &tree->right, ret_rest);
        *ret_below = tree;
    } else {
        split(tree->left, start, ret_below, &tree->left);
        *ret_rest = tree;
    }
    update(tree);
}

/* Joins two trees; all ranges of `below` must precede those of `above`. */
static struct sim_range *join(struct sim_range *below, struct sim_range *above)
{
    if (below == NULL) {
        return above;
    }
    if (above == NULL) {
        return below;
    }
    if (below->priority > above->priority) {
        below->right = join(below->right, above);
        update(below);
        return below;
    }
    above->left = join(below, above->left);
    update(above);
    return above;
}

static struct sim_range *insert(struct sim_range *tree, struct sim_range *range)
{
    if (tree == NULL || tree->priority < range->priority) {
        split(tree, range->start, &range->left, &range->right);
        update(range);
        return range;
    }
    if (range->start < tree->start) {
        tree->left = insert(tree->left, range);
    } else {
        tree->right = insert(tree->right, range);
    }
    update(tree);
    return tree;
}

static struct sim_range *without(struct sim_range *tree, const struct sim_range *range)
{
    if (tree == range) {
        return join(tree->left, tree->right);
    }
    if (range->start < tree->start) {
        tree->left = without(tree->left, range);
    } else {
        tree->right = without(tree->right, range);
    }
    update(tree);
    return tree;
}

void sim_rangemap_insert(struct sim_rangemap *map, struct sim_range *range)
{
    range->left = NULL;
    range->right = NULL;
    range->largest = range->size;
    range->priority = priority_of(range->start);
    map->root = insert(map->root, range);
    map->count++;
}

void sim_rangemap_remove(struct sim_rangemap *map, struct sim_range *range)
{
    map->root = without(map->root, range);
    map->count--;
}

struct sim_range *sim_rangemap_find(const struct sim_rangemap *map, uint64_t address)
{
    struct sim_range *node = map->root;

    while (node != NULL) {
        if (address < node->start) {
            node = node->left;
        } else if (address - node->start < node->size) {
            return node;
        } else {
            node = node->right;
        }
    }
    return NULL;
}

struct sim_range *sim_rangemap_from(const struct sim_rangemap *map, uint64_t address)
{
    struct sim_range *node = map->root;
    struct sim_range *best = NULL;

    while (node != NULL) {
        if (address < node->start) {
            best = node;
            node = node->left;
        } else if (address - node->start < node->size) {
            return node;
        } else {
            node = node->right;
        }
    }
    return best;
}

struct sim_range *sim_rangemap_next(const struct sim_rangemap *map, const struct sim_range *range)
{
    return sim_rangemap_from(map, sim_range_end(range));
}

static struct sim_range *fit(struct sim_range *tree, uint64_t from, uint64_t size)
{
    struct sim_range *found;

    if (largest_of(tree) < size) {
        return NULL;
    }
    if (tree->start < from) {
        return fit(tree->right, from, size);
    }
    found = fit(tree->left, from, size);
    if (found != NULL) {
        return found;
    }
    return tree->size >= size ? tree : fit(tree->right, from, size);
}

struct sim_range *sim_rangemap_fit(const struct sim_rangemap *map, uint64_t from, uint64_t size)
{
    return fit(map->root, from, size);
}
