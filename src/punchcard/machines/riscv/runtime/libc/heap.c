/* malloc and free: a list of the free blocks in the order of their addresses; the first that is large enough is taken.

   A block is a header of 8 bytes and what the caller gets, which begins at a multiple of 16. Sizes count the header and are
   multiples of 16. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

#define UNIT 16

typedef struct block {
    size_t size;
    size_t unused;
    struct block *next; /* only of a free block: in the bytes that the caller gave back */
} Block;

#define HEADER offsetof(Block, next)

static Block *free_blocks;
static char *heap_end;

static void *content(Block *block) { return (char *)block + HEADER; }
static Block *block_of(void *memory) { return (Block *)(void *)((char *)memory - HEADER); }
static char *end_of(Block *block) { return (char *)block + block->size; }

/* A block at the end of the heap; none where the machine has no room left. */
static Block *grow(size_t size)
{
    if (heap_end == NULL)
        heap_end = (char *)((__system_call(0, 0, 0, BRK) + UNIT - 1) & -UNIT) + UNIT - HEADER;
    char *wanted = heap_end + size;
    if ((char *)__system_call((long)wanted, 0, 0, BRK) != wanted)
        return NULL;
    Block *block = (Block *)(void *)heap_end;
    heap_end = wanted;
    block->size = size;
    return block;
}

void *malloc(size_t wanted)
{
    if (wanted > PTRDIFF_MAX - 2 * UNIT)
        return NULL;
    size_t size = (wanted + HEADER + UNIT - 1) & ~(size_t)(UNIT - 1);
    for (Block **link = &free_blocks; *link != NULL; link = &(*link)->next) {
        Block *block = *link;
        if (block->size < size)
            continue;
        if (block->size == size) {
            *link = block->next;
        } else { /* the rest stays in its place of the list */
            Block *rest = (Block *)(void *)((char *)block + size);
            rest->size = block->size - size;
            rest->next = block->next;
            *link = rest;
            block->size = size;
        }
        return content(block);
    }
    Block *block = grow(size);
    return block == NULL ? NULL : content(block);
}

void free(void *memory)
{
    if (memory == NULL)
        return;
    Block *block = block_of(memory), *before = NULL, *after = free_blocks;
    for (; after != NULL && after < block; after = after->next)
        before = after;
    block->next = after;
    if (after != NULL && end_of(block) == (char *)after) {
        block->size += after->size;
        block->next = after->next;
    }
    if (before == NULL) {
        free_blocks = block;
    } else if (end_of(before) == (char *)block) {
        before->size += block->size;
        before->next = block->next;
    } else {
        before->next = block;
    }
}

void *calloc(size_t count, size_t size)
{
    if (size != 0 && count > PTRDIFF_MAX / size)
        return NULL;
    void *memory = malloc(count * size);
    return memory == NULL ? NULL : memset(memory, 0, count * size);
}

void *realloc(void *memory, size_t size)
{
    if (memory == NULL)
        return malloc(size);
    size_t before = block_of(memory)->size - HEADER;
    if (before >= size)
        return memory;
    void *larger = malloc(size);
    if (larger == NULL)
        return NULL;
    memcpy(larger, memory, before);
    free(memory);
    return larger;
}
