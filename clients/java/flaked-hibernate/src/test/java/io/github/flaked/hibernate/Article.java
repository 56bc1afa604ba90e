package io.github.flaked.hibernate;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;

@Entity
class Article {
    @Id
    @FlakedId
    Long id;
}
