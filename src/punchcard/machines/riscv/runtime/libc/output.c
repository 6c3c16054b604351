/* <stdio.h>: three streams, by lines: a system call for each byte would be slow. Output goes out before input is read. */

#include <stdio.h>

#include "system.h"

struct punchcard_file {
    int pushed; /* a character that was given back, plus 1 */
    int ended;
};

static FILE files[3];
FILE *const stdin = &files[0], *const stdout = &files[1], *const stderr = &files[2];

static char line[256];
static size_t held;

int fflush(FILE *file)
{
    (void)file;
    for (size_t sent = 0; sent < held;) {
        long done = __system_call(1, (long)(line + sent), (long)(held - sent), WRITE);
        if (done <= 0)
            break;
        sent += (size_t)done;
    }
    held = 0;
    return 0;
}

int fputc(int c, FILE *file)
{
    unsigned char byte = (unsigned char)c;
    if (file == stderr) {
        fflush(stdout);
        return __system_call(2, (long)&byte, 1, WRITE) == 1 ? byte : EOF;
    }
    line[held++] = (char)byte;
    if (byte == '\n' || held == sizeof line)
        fflush(stdout);
    return byte;
}

int putc(int c, FILE *file) { return fputc(c, file); }
int putchar(int c) { return fputc(c, stdout); }

int fputs(const char *text, FILE *file)
{
    while (*text != 0)
        if (fputc(*text++, file) == EOF)
            return EOF;
    return 0;
}

int puts(const char *text) { return fputs(text, stdout) == EOF ? EOF : putchar('\n'); }

size_t fwrite(const void *items, size_t size, size_t count, FILE *file)
{
    const char *bytes = items;
    for (size_t done = 0; done < count; done++)
        for (size_t i = 0; i < size; i++)
            if (fputc(*bytes++, file) == EOF)
                return done;
    return count;
}

int fgetc(FILE *file)
{
    static unsigned char bytes[256];
    static long next, count;
    if (file->pushed > 0) {
        int c = file->pushed - 1;
        file->pushed = 0;
        return c;
    }
    if (file != stdin)
        return EOF;
    if (next == count) { /* a read gives what there is up to the end of a line */
        fflush(stdout);
        next = 0;
        count = __system_call(0, (long)bytes, sizeof bytes, READ);
        if (count <= 0) {
            count = 0;
            file->ended = 1;
            return EOF;
        }
    }
    return bytes[next++];
}

int getc(FILE *file) { return fgetc(file); }
int getchar(void) { return fgetc(stdin); }

int ungetc(int c, FILE *file)
{
    if (c == EOF || file->pushed > 0)
        return EOF;
    file->pushed = (unsigned char)c + 1;
    file->ended = 0;
    return c;
}

int feof(FILE *file) { return file->ended; }

int ferror(FILE *file)
{
    (void)file;
    return 0;
}

char *fgets(char *text, int size, FILE *file)
{
    int count = 0;
    while (count < size - 1) {
        int c = fgetc(file);
        if (c == EOF)
            break;
        text[count++] = (char)c;
        if (c == '\n')
            break;
    }
    if (count == 0)
        return NULL;
    text[count] = 0;
    return text;
}

size_t fread(void *items, size_t size, size_t count, FILE *file)
{
    char *bytes = items;
    for (size_t done = 0; done < count; done++)
        for (size_t i = 0; i < size; i++) {
            int c = fgetc(file);
            if (c == EOF)
                return done;
            *bytes++ = (char)c;
        }
    return count;
}
