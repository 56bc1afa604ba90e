package io.github.flaked.hibernate;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;

@Entity
class Invoice {
    @Id
    @FlakedId(sequence = "order")
    long id;
}
