/** IDs of Hibernate's entities from flaked nodes. */
package io.github.flaked.hibernate;
