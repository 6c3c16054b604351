/* The Mandelbrot set in fixed point: numbers have 12 bits after the point, so that a product fits 32 bits. */

#include <stdio.h>

#define BITS 12
#define ONE (1 << BITS)
#define WIDTH 56
#define HEIGHT 20
#define MOST 24

#define STEP (3 * ONE / WIDTH) /* between two columns; a character is twice as high as wide */
#define LEFT (-2 * ONE - ONE / 8)
#define TOP (-HEIGHT * STEP)

static int product(int a, int b) { return (a * b) >> BITS; }

int main(void)
{
    static const char shades[] = " .,:;-~=+*#%@";
    for (int row = 0; row < HEIGHT; row++) {
        for (int column = 0; column < WIDTH; column++) {
            int cx = LEFT + column * STEP, cy = TOP + 2 * row * STEP, x = 0, y = 0, count = 0;
            while (count < MOST) {
                int xx = product(x, x), yy = product(y, y);
                if (xx + yy > 4 * ONE)
                    break;
                y = 2 * product(x, y) + cy;
                x = xx - yy + cx;
                count++;
            }
            putchar(count == MOST ? '@' : shades[count * 12 / MOST]);
        }
        putchar('\n');
    }
    return 0;
}
