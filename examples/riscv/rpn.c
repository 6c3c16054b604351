/* A calculator in reverse Polish notation, for the arguments: punchcard run examples/riscv/rpn.c -- 3 4 + 5 x */

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 32 };

static long stack[MOST];
static int height;

static void push(long number)
{
    if (height == MOST) {
        fprintf(stderr, "more than %d numbers\n", MOST);
        exit(2);
    }
    stack[height++] = number;
}

static long pop(void)
{
    if (height == 0) {
        fprintf(stderr, "a number is missing\n");
        exit(2);
    }
    return stack[--height];
}

static void compute(const char *word)
{
    char *end;
    long number = strtol(word, &end, 0);
    if (end != word && *end == 0) {
        push(number);
        return;
    }
    long y = pop(), x = pop();
    if (*word == '+')
        push(x + y);
    else if (*word == '-')
        push(x - y);
    else if (*word == 'x')
        push(x * y);
    else if (*word == '/' && y != 0)
        push(x / y);
    else {
        fprintf(stderr, "'%s' is not a number, nor +, -, x or / by something else than 0\n", word);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static char *example[] = {"3", "4", "+", "5", "x"};
    char **words = argc > 1 ? argv + 1 : example;
    int count = argc > 1 ? argc - 1 : (int)(sizeof example / sizeof *example);
    for (int i = 0; i < count; i++) {
        printf("%s ", words[i]);
        compute(words[i]);
    }
    printf("= %ld\n", pop());
    return height == 0 ? 0 : 1;
}
