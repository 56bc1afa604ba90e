/** Spring Boot's auto-configuration of a {@link io.github.flaked.client.FlakedClient}. */
package io.github.flaked.spring;
