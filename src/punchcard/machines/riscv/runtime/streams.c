/* What picolibc needs to know of the world: three streams, the heap, and the end. */

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "system.h"

static long checked(long result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

ssize_t write(int file, const void *bytes, size_t size)
{
    return checked(__system_call(file, (long)bytes, (long)size, WRITE));
}

ssize_t read(int file, void *bytes, size_t size)
{
    return checked(__system_call(file, (long)bytes, (long)size, READ));
}

off_t lseek(int file, off_t place, int from)
{
    return checked(__system_call(file, (long)place, from, SEEK));
}

int close(int file)
{
    return (int)checked(__system_call(file, 0, 0, CLOSE));
}

void *sbrk(ptrdiff_t more)
{
    static char *end;
    if (end == NULL)
        end = (char *)__system_call(0, 0, 0, BRK);
    char *before = end, *wanted = end + more;
    if ((char *)__system_call((long)wanted, 0, 0, BRK) != wanted) {
        errno = ENOMEM;
        return (void *)-1;
    }
    end = wanted;
    return before;
}

/* Output goes out by lines: a system call for each byte would be slow. */

static char line[256];
static size_t held;

static int flush(FILE *stream)
{
    (void)stream;
    size_t sent = 0;
    while (sent < held) {
        ssize_t done = write(1, line + sent, held - sent);
        if (done <= 0)
            break;
        sent += (size_t)done;
    }
    held = 0;
    return 0;
}

static int put(char byte, FILE *stream)
{
    line[held++] = byte;
    if (byte == '\n' || held == sizeof line)
        flush(stream);
    return (unsigned char)byte;
}

static int put_error(char byte, FILE *stream)
{
    flush(stream);
    write(2, &byte, 1);
    return (unsigned char)byte;
}

/* Input comes by lines too: a read gives what there is up to the end of a line. */
static int get(FILE *stream)
{
    static unsigned char bytes[256];
    static ssize_t next, count;
    if (next == count) {
        flush(stream);
        next = 0;
        count = read(0, bytes, sizeof bytes);
        if (count <= 0) {
            count = 0;
            return _FDEV_EOF;
        }
    }
    return bytes[next++];
}

static FILE output = FDEV_SETUP_STREAM(put, NULL, flush, _FDEV_SETUP_WRITE);
static FILE errors = FDEV_SETUP_STREAM(put_error, NULL, NULL, _FDEV_SETUP_WRITE);
static FILE input = FDEV_SETUP_STREAM(NULL, get, NULL, _FDEV_SETUP_READ);
FILE *const stdin = &input, *const stdout = &output, *const stderr = &errors;

/* picolibc's own fgets loses a last line that has no newline. */
char *fgets(char *text, int size, FILE *stream)
{
    int count = 0, c = 0;
    while (count < size - 1 && c != '\n' && (c = getc(stream)) != EOF)
        text[count++] = (char)c;
    if (count == 0)
        return NULL;
    text[count] = 0;
    return text;
}

/* What picolibc's raise and abort ask for: the one process that there is. */
pid_t getpid(void)
{
    return ITSELF;
}

int kill(pid_t process, int signal)
{
    flush(NULL);
    return (int)checked(__system_call(process, signal, 0, KILL));
}

void _exit(int status)
{
    flush(NULL);
    for (;;)
        __system_call(status, 0, 0, EXIT);
}
