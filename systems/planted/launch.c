/* launch ITERATIONS PROGRAM ARGUMENT...: replaces itself by PROGRAM with burn.so, from its own folder, loaded first. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    char library[PATH_MAX + sizeof "/burn.so"];
    ssize_t length = readlink("/proc/self/exe", library, PATH_MAX);
    if (count < 3 || length < 0) {
        fprintf(stderr, "usage: launch ITERATIONS PROGRAM ARGUMENT...\n");
        return 2;
    }
    library[length] = '\0';
    strcpy(strrchr(library, '/'), "/burn.so");
    setenv("LD_PRELOAD", library, 1);
    setenv("LINERATE_BURN", arguments[1], 1);
    execvp(arguments[2], arguments + 2);
    perror(arguments[2]);
    return 127;
}
