/* A small text adventure. Commands: north, south, east, west (or n, s, e, w), take, drop, look, open, quit. */

#include <stdio.h>
#include <string.h>

enum { NORTH, SOUTH, EAST, WEST, DIRECTIONS };
enum { HALL, LIBRARY, CELLAR, VAULT, ROOMS };
enum { LAMP, KEY, CARD, THINGS };
enum { NOWHERE = -1, CARRIED = -2 };

static const char *const directions[] = {"north", "south", "east", "west"};
static const char *const rooms[] = {
    "You are in a hall of grey steel. Machines hum behind the walls.",
    "You are in a library of punched cards. Every shelf is labelled with a matrix.",
    "You are in a cellar. A heavy door is in the east wall.",
    "You are in the vault. A single column of light stands in the middle.",
};
static int ways[ROOMS][DIRECTIONS] = {
    {LIBRARY, CELLAR, NOWHERE, NOWHERE},
    {NOWHERE, HALL, NOWHERE, NOWHERE},
    {HALL, NOWHERE, NOWHERE, NOWHERE},
    {NOWHERE, NOWHERE, NOWHERE, CELLAR},
};
static const char *const things[] = {"lamp", "key", "card"};
static int places[] = {HALL, LIBRARY, VAULT};

static int room = HALL, moves, over;

static int is_dark(void) { return room == CELLAR && places[LAMP] != CARRIED && places[LAMP] != CELLAR; }

static void look(void)
{
    if (is_dark()) {
        puts("It is dark here.");
        return;
    }
    puts(rooms[room]);
    for (int i = 0; i < DIRECTIONS; i++)
        if (ways[room][i] != NOWHERE)
            printf("There is a way %s.\n", directions[i]);
    for (int i = 0; i < THINGS; i++)
        if (places[i] == room)
            printf("There is a %s here.\n", things[i]);
}

static int thing_of(const char *word)
{
    for (int i = 0; i < THINGS; i++)
        if (strcmp(word, things[i]) == 0)
            return i;
    return -1;
}

static void take(const char *word)
{
    int thing = thing_of(word);
    if (thing < 0 || places[thing] != room || is_dark()) {
        puts("You see no such thing.");
        return;
    }
    places[thing] = CARRIED;
    printf("You have the %s.\n", things[thing]);
    if (thing == CARD) {
        printf("The card reads: X <- TF(W; X). You have won in %d moves.\n", moves);
        over = 1;
    }
}

static void drop(const char *word)
{
    int thing = thing_of(word);
    if (thing < 0 || places[thing] != CARRIED) {
        puts("You do not have that.");
        return;
    }
    places[thing] = room;
    puts("Dropped.");
}

static void open_door(void)
{
    if (room != CELLAR || is_dark())
        puts("There is nothing to open.");
    else if (places[KEY] != CARRIED)
        puts("The door is locked.");
    else {
        ways[CELLAR][EAST] = VAULT;
        puts("The key turns. The door is open.");
    }
}

static void go(int direction)
{
    if (ways[room][direction] == NOWHERE) {
        puts("There is no way.");
        return;
    }
    room = ways[room][direction];
    look();
}

static void obey(char *line)
{
    char *word = strchr(line, ' ');
    if (word != NULL)
        *word++ = 0;
    else
        word = line + strlen(line);
    moves++;
    for (int i = 0; i < DIRECTIONS; i++)
        if (strcmp(line, directions[i]) == 0 || (line[0] == directions[i][0] && line[1] == 0)) {
            go(i);
            return;
        }
    if (strcmp(line, "look") == 0)
        look();
    else if (strcmp(line, "take") == 0)
        take(word);
    else if (strcmp(line, "drop") == 0)
        drop(word);
    else if (strcmp(line, "open") == 0)
        open_door();
    else if (strcmp(line, "quit") == 0)
        over = 1;
    else
        printf("I do not understand \"%s\".\n", line);
}

int main(void)
{
    static char line[80];
    look();
    while (!over) {
        printf("> ");
        if (fgets(line, sizeof line, stdin) == NULL)
            break;
        line[strcspn(line, "\n")] = 0;
        if (line[0] != 0)
            obey(line);
    }
    puts("Good bye.");
    return places[CARD] == CARRIED ? 0 : 1;
}
