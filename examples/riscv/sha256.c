/* SHA-256 (FIPS 180-4) of the input, or of three known texts where the input is empty. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

typedef struct {
    uint32_t state[8];
    uint8_t block[64];
    uint32_t size; /* bytes so far */
} Hash;

static uint32_t turn(uint32_t x, int amount) { return x >> amount | x << (32 - amount); }

static void compress(Hash *hash)
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++) {
        const uint8_t *b = hash->block + 4 * i;
        w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, hash->state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t e = turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25), choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t one = s[7] + e + choice + constants[i] + w[i];
        uint32_t a = turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22);
        uint32_t two = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        for (int j = 7; j > 0; j--)
            s[j] = s[j - 1];
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        hash->state[i] += s[i];
}

static void begin(Hash *hash)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, first, sizeof first);
    hash->size = 0;
}

static void take(Hash *hash, uint8_t byte)
{
    hash->block[hash->size++ % 64] = byte;
    if (hash->size % 64 == 0)
        compress(hash);
}

static void show(Hash *hash, const char *name)
{
    uint32_t bits = 8 * hash->size;
    take(hash, 0x80);
    while (hash->size % 64 != 56)
        take(hash, 0);
    for (int i = 0; i < 8; i++)
        take(hash, i < 4 ? 0 : (uint8_t)(bits >> (8 * (7 - i))));
    for (int i = 0; i < 8; i++)
        printf("%08lx", (unsigned long)hash->state[i]);
    printf("  %s\n", name);
}

int main(void)
{
    static const char *const texts[] = {"", "abc", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"};
    Hash hash;
    int c = getchar();
    if (c == EOF) {
        for (int i = 0; i < 3; i++) {
            begin(&hash);
            for (const char *t = texts[i]; *t != 0; t++)
                take(&hash, (uint8_t)*t);
            show(&hash, texts[i]);
        }
        return 0;
    }
    begin(&hash);
    for (; c != EOF; c = getchar())
        take(&hash, (uint8_t)c);
    show(&hash, "-");
    return 0;
}
