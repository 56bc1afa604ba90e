package io.github.flaked.hibernate;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;

@Entity
class Missing {
    @Id
    @FlakedId(sequence = "missing", prefetch = 10)
    long id;
}
