/* Conway's Game of Life on a torus: a glider and a small explosion. */

#include <stdio.h>
#include <string.h>

#define WIDTH 40
#define HEIGHT 16
#define GENERATIONS 24

static char cells[HEIGHT][WIDTH], next[HEIGHT][WIDTH];

static void put(int top, int left, const char *const *rows)
{
    for (int y = 0; rows[y] != NULL; y++)
        for (int x = 0; rows[y][x] != 0; x++)
            cells[top + y][left + x] = rows[y][x] == '#';
}

static int neighbours(int y, int x)
{
    int above = y == 0 ? HEIGHT - 1 : y - 1, below = y == HEIGHT - 1 ? 0 : y + 1;
    int left = x == 0 ? WIDTH - 1 : x - 1, right = x == WIDTH - 1 ? 0 : x + 1;
    return cells[above][left] + cells[above][x] + cells[above][right] + cells[y][left] + cells[y][right]
         + cells[below][left] + cells[below][x] + cells[below][right];
}

static void show(int generation)
{
    printf("generation %d\n", generation);
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++)
            putchar(cells[y][x] ? '#' : '.');
        putchar('\n');
    }
}

int main(void)
{
    static const char *const glider[] = {".#.", "..#", "###", NULL};
    static const char *const pentomino[] = {".##", "##.", ".#.", NULL};
    put(1, 1, glider);
    put(7, 22, pentomino);
    show(0);
    for (int generation = 1; generation <= GENERATIONS; generation++) {
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                int around = neighbours(y, x);
                next[y][x] = around == 3 || (around == 2 && cells[y][x]);
            }
        memcpy(cells, next, sizeof cells);
    }
    show(GENERATIONS);
    return 0;
}
