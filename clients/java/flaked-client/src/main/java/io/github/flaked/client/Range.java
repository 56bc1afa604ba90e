package io.github.flaked.client;

/**
 * Values of a sequence that follow each other: first, first + increment, ..., last.
 *
 * @param first the first value
 * @param last the last value
 */
public record Range(long first, long last) {}
