package io.github.flaked.client;

/** Values of a sequence that follow each other: first, first + increment, ..., last. */
public record Range(long first, long last) {}
