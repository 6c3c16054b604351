/* <string.h>. Compilers call memcpy, memmove, memset and memcmp by themselves. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    unsigned char *d = to;
    const unsigned char *s = from;
    if ((((uintptr_t)d | (uintptr_t)s) & 3) == 0)
        for (; size >= 4; size -= 4, d += 4, s += 4)
            *(uint32_t *)(void *)d = *(const uint32_t *)(const void *)s;
    while (size-- > 0)
        *d++ = *s++;
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    unsigned char *d = to;
    const unsigned char *s = from;
    if (d <= s || d >= s + size)
        return memcpy(to, from, size);
    while (size-- > 0)
        d[size] = s[size];
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    unsigned char *d = to;
    while (size > 0 && ((uintptr_t)d & 3) != 0) {
        *d++ = (unsigned char)byte;
        size--;
    }
    uint32_t word = (unsigned char)byte;
    word |= word << 8;
    word |= word << 16;
    for (; size >= 4; size -= 4, d += 4)
        *(uint32_t *)(void *)d = word;
    while (size-- > 0)
        *d++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *one, const void *other, size_t size)
{
    const unsigned char *a = one, *b = other;
    for (; size > 0; size--, a++, b++)
        if (*a != *b)
            return *a - *b;
    return 0;
}

void *memchr(const void *from, int byte, size_t size)
{
    const unsigned char *s = from;
    for (; size > 0; size--, s++)
        if (*s == (unsigned char)byte)
            return (void *)s;
    return NULL;
}

size_t strlen(const char *text)
{
    const char *end = text;
    while (*end != 0)
        end++;
    return (size_t)(end - text);
}

int strcmp(const char *one, const char *other)
{
    while (*one != 0 && *one == *other)
        one++, other++;
    return (unsigned char)*one - (unsigned char)*other;
}

int strncmp(const char *one, const char *other, size_t size)
{
    for (; size > 0; size--, one++, other++)
        if (*one != *other || *one == 0)
            return (unsigned char)*one - (unsigned char)*other;
    return 0;
}

char *strcpy(char *restrict to, const char *restrict from)
{
    char *d = to;
    while ((*d++ = *from++) != 0)
        ;
    return to;
}

char *strncpy(char *restrict to, const char *restrict from, size_t size)
{
    size_t i = 0;
    for (; i < size && from[i] != 0; i++)
        to[i] = from[i];
    for (; i < size; i++)
        to[i] = 0;
    return to;
}

char *strcat(char *restrict to, const char *restrict from)
{
    strcpy(to + strlen(to), from);
    return to;
}

char *strncat(char *restrict to, const char *restrict from, size_t size)
{
    char *d = to + strlen(to);
    for (; size > 0 && *from != 0; size--)
        *d++ = *from++;
    *d = 0;
    return to;
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

char *strchr(const char *text, int c)
{
    for (;; text++) {
        if (*text == (char)c)
            return (char *)text;
        if (*text == 0)
            return NULL;
    }
}

char *strrchr(const char *text, int c)
{
    const char *found = NULL;
    for (;; text++) {
        if (*text == (char)c)
            found = text;
        if (*text == 0)
            return (char *)found;
    }
}

char *strstr(const char *text, const char *part)
{
    size_t size = strlen(part);
    for (;; text++) {
        if (strncmp(text, part, size) == 0)
            return (char *)text;
        if (*text == 0)
            return NULL;
    }
}

size_t strspn(const char *text, const char *among)
{
    size_t count = 0;
    while (text[count] != 0 && strchr(among, text[count]) != NULL)
        count++;
    return count;
}

size_t strcspn(const char *text, const char *among)
{
    size_t count = 0;
    while (text[count] != 0 && strchr(among, text[count]) == NULL)
        count++;
    return count;
}
