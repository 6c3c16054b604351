/* Bytes and texts, of the small library. */

#ifndef PUNCHCARD_STRING_H
#define PUNCHCARD_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *one, const void *other, size_t size);
void *memchr(const void *from, int byte, size_t size);

size_t strlen(const char *text);
int strcmp(const char *one, const char *other);
int strncmp(const char *one, const char *other, size_t size);
char *strcpy(char *restrict to, const char *restrict from);
char *strncpy(char *restrict to, const char *restrict from, size_t size);
char *strcat(char *restrict to, const char *restrict from);
char *strncat(char *restrict to, const char *restrict from, size_t size);
char *strdup(const char *text);
char *strchr(const char *text, int c);
char *strrchr(const char *text, int c);
size_t strspn(const char *text, const char *among);
size_t strcspn(const char *text, const char *among);
char *strstr(const char *text, const char *part);

#endif
